//! The match over all commands, with what every one of them has in common: the stamp, and the
//! remembered answers.

use crate::machine::Applied;
use crate::machine::command::Entry;
use crate::machine::reply::Reply;
use crate::machine::state::State;

pub(in crate::machine) fn apply(_state: &mut State, _index: u64, _entry: &Entry) -> Applied {
    Applied { reply: Reply::Done, changes: Vec::new(), effects: Vec::new() }
}
