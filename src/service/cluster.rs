//! The cluster as this member sees it, and what an operator may do to it.

use crate::base::time::Timestamp;
use crate::model::id::NodeId;
use crate::service::call::{Caller, Seen};
use crate::service::error::ServiceError;
use crate::service::{Service, WRITE_WITHIN};

/// A member that has committed entries beyond this many to apply is not ready.
const READY_LAG_MAX: u64 = 1_000;

#[derive(Clone, Debug)]
pub struct ClusterView {
    pub cluster_id: String,
    /// The member that answers.
    pub node: NodeId,
    pub leader: Option<NodeId>,
    pub term: u64,
    pub members: Vec<MemberView>,
    /// Indexes of the member's own log.
    pub last_log_index: u64,
    pub committed_index: u64,
    pub applied_index: u64,
    pub snapshot_index: u64,
    pub purged_index: u64,
    /// The highest time in the applied log.
    pub stamp: Timestamp,
}

#[derive(Clone, Debug)]
pub struct MemberView {
    pub node: NodeId,
    pub peer_address: String,
    pub api_address: String,
    pub is_voter: bool,
    /// How far its log is known to agree with the leader's; only the leader knows.
    pub matched_index: Option<u64>,
}

impl Service {
    #[must_use]
    pub fn cluster(&self) -> Seen<ClusterView> {
        let status = self.inner.replica.status();
        let view = self.inner.replica.view();
        let members = status.members.into_iter().map(|member| MemberView {
            node: member.node,
            peer_address: member.peer_address,
            api_address: member.api_address,
            is_voter: member.is_voter,
            matched_index: member.matched_index,
        });
        let value = ClusterView {
            cluster_id: status.cluster_id,
            node: status.node,
            leader: status.leader,
            term: status.term,
            members: members.collect(),
            last_log_index: status.last_log_index,
            committed_index: status.committed_index,
            applied_index: status.applied_index,
            snapshot_index: status.snapshot_index,
            purged_index: status.purged_index,
            stamp: view.state.stamp(),
        };
        Seen { value, index: view.applied_index, lag: None }
    }

    /// Removes a member for good; its id is never used again.
    ///
    /// # Errors When there is no such member, when it is the last one that votes, and when another
    /// change is under way.
    pub async fn remove_member(&self, _caller: &Caller, node: NodeId) -> Result<(), ServiceError> {
        Ok(self.inner.replica.remove_member(node, WRITE_WITHIN).await?)
    }

    /// Hands leadership over, to the most advanced voter when none is named.
    ///
    /// # Errors
    /// When there is no such member, and when there is no leader.
    pub async fn transfer_leadership(
        &self,
        _caller: &Caller,
        to: Option<NodeId>,
    ) -> Result<(), ServiceError> {
        Ok(self.inner.replica.transfer_leadership(to, WRITE_WITHIN).await?)
    }

    /// Whether callers should be sent to this member.
    ///
    /// # Errors
    /// Why not.
    pub fn ready(&self) -> Result<(), String> {
        let status = self.inner.replica.status();
        let lag = status.committed_index.saturating_sub(status.applied_index);
        if let Some(reason) = status.stopped {
            return Err(format!("this member has stopped: {reason}"));
        }
        if !status.recovered {
            return Err("this member has not applied the log it started with".to_owned());
        }
        if status.leader.is_none() {
            return Err("this member knows no leader".to_owned());
        }
        if status.cut_off {
            return Err("this member is cut off from a majority of the others".to_owned());
        }
        if lag > READY_LAG_MAX {
            return Err(format!(
                "{lag} committed entries are not applied, more than {READY_LAG_MAX}"
            ));
        }
        Ok(())
    }

    /// Why this member has stopped, once it has.
    #[must_use]
    pub fn stopped(&self) -> Option<String> {
        self.inner.replica.status().stopped
    }
}
