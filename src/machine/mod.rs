//! The replicated state machine: [`Machine::apply`] turns a state and an entry into the next state,
//! a reply, the records that changed and hints for the node around it.
//!
//! Four properties hold, and the tests of this module are named after them.
//!
//! - **Pure.** The result depends on the state and the entry alone. There is no clock: time is the
//!   stamp that the leader wrote into the entry. There is no chance, and no map without an order.
//! - **Total.** Every entry that decodes can be applied to every state. What cannot be done is
//!   refused by a reply; nothing panics, apart from a broken invariant.
//! - **Serial.** Overlap, slots, keys and limits are decided here and nowhere else, one entry after
//!   the other, and so they are exact over the whole cluster.
//! - **Blind to schedules.** Apply never works out when a trigger fires. A leader did, and the
//!   entry carries it: members with different time-zone tables still agree.
//!
//! Nothing here knows of Raft, disks, HTTP or threads.

pub mod apply;
pub mod builder;
pub mod change;
pub mod codec;
pub mod command;
pub mod digest;
pub mod effect;
pub mod index;
pub mod invariant;
pub mod reply;
pub mod state;

use crate::machine::change::Change;
use crate::machine::command::Entry;
use crate::machine::effect::Effect;
use crate::machine::reply::Reply;
use crate::machine::state::State;

/// What applying one entry gave.
#[derive(Clone, Debug)]
pub struct Applied {
    pub reply: Reply,
    pub changes: Vec<Change>,
    pub effects: Vec<Effect>,
}

/// The state, and the one way to change it.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    state: State,
}

impl Machine {
    #[must_use]
    pub fn new(state: State) -> Machine {
        Machine { state }
    }

    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Applies the entry at a log index. Indexes ascend from call to call.
    pub fn apply(&mut self, index: u64, entry: &Entry) -> Applied {
        apply::apply(&mut self.state, index, entry)
    }
}
