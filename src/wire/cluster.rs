//! The cluster and its members.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The cluster as one member sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cluster {
    pub cluster_id: String,
    /// The member that answers.
    pub node: u64,
    /// Absent while it knows none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<u64>,
    pub term: u64,
    pub members: Vec<Member>,
    /// Indexes of the member's own log.
    pub last_log_index: u64,
    pub committed_index: u64,
    pub applied_index: u64,
    pub snapshot_index: u64,
    pub purged_index: u64,
    /// The highest time in the applied log.
    pub stamp: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Member {
    pub node: u64,
    pub peer_addr: String,
    pub api_addr: String,
    pub role: MemberRole,
    pub leader: bool,
    /// How far its log is known to agree with the leader's; only when the leader answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched_index: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemberRole {
    Voter,
    /// It gets the log and does not vote yet.
    Learner,
}

/// The body of `POST /v1/cluster:transfer-leadership`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferRequest {
    /// The voter that shall lead; the one that is most up to date when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Version {
    pub version: String,
    /// The edition of the time-zone database in this program.
    pub tzdata: String,
}
