//! A process group of our own: started together, signalled together, and never left behind.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::time::Instant;

/// How often an ending group is looked at; the system tells us only of our own child.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A group whose leader is a child of this process. What is left of it is killed when this is
/// dropped.
#[derive(Debug)]
pub struct ProcessGroup {
    leader: Option<Pid>,
}

/// Which signal it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// Nothing was left to be signalled.
    Itself,
    /// `SIGTERM` within the grace.
    Term,
    /// `SIGKILL` after the grace.
    Kill,
}

impl ProcessGroup {
    /// The group led by the process `id`, as `process_group(0)` makes it.
    #[must_use]
    pub fn led_by(id: Option<u32>) -> ProcessGroup {
        let raw = id.and_then(|id| i32::try_from(id).ok());
        ProcessGroup { leader: raw.and_then(Pid::from_raw) }
    }

    /// Sends `SIGTERM`, waits up to `grace` until the whole group is gone, then sends `SIGKILL`.
    /// The caller reaps the leader meanwhile: a dead child that nobody waited for still counts as
    /// there.
    pub async fn terminate(&mut self, grace: Duration) -> EndedBy {
        let Some(leader) = self.leader else {
            return EndedBy::Itself;
        };
        if kill_process_group(leader, Signal::TERM).is_err() {
            self.leader = None;
            return EndedBy::Itself;
        }
        let give_up_at = Instant::now() + grace;
        let mut look = tokio::time::interval(LOOK_EVERY);
        while Instant::now() < give_up_at {
            look.tick().await;
            if test_kill_process_group(leader).is_err() || only_dead_members(leader) {
                self.leader = None;
                return EndedBy::Term;
            }
        }
        self.kill();
        EndedBy::Kill
    }

    /// Sends `SIGKILL` to whatever is left, once.
    pub fn kill(&mut self) {
        if let Some(leader) = self.leader.take() {
            // Nobody left is what we want.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

/// True when every process of the group is dead and only waits to be collected. A child's children
/// are left to process 1, and in many containers that one collects nobody. Where there is no
/// `/proc`: false.
fn only_dead_members(group: Pid) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return false;
    };
    for process in processes.flatten() {
        let is_process = process.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit);
        if !is_process {
            continue;
        }
        let Ok(stat) = std::fs::read_to_string(process.path().join("stat")) else {
            continue;
        };
        let is_alive = member_state(&stat, group).is_some_and(|state| state != "Z");
        if is_alive {
            return false;
        }
    }
    true
}

/// The state of a process, when it is of this group. Its name stands in parentheses, and may hold
/// some.
fn member_state(stat: &str, group: Pid) -> Option<&str> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split(' ');
    let (state, _parent, own_group) = (fields.next()?, fields.next()?, fields.next()?);
    (own_group.parse() == Ok(group.as_raw_pid())).then_some(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_told_by_their_group_whatever_their_name() {
        let group = Pid::from_raw(77).unwrap();
        assert_eq!(member_state("80 (a) b) (c)) Z 1 77 77 0", group), Some("Z"));
        assert_eq!(member_state("80 (sh) S 1 78 78 0", group), None);
        assert_eq!(member_state("", group), None);
    }
}
