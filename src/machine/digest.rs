//! A number that two members compare at the same index: equal states have equal digests.

use serde::Serialize;

use crate::base::hash::{mix, stable_hash};
use crate::machine::codec::encode;
use crate::machine::state::State;

impl State {
    /// A stable hash over all tables. Linear in the size of the state.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut digest = Digest(0);
        digest.add("meta", self.meta());
        self.tenants().values().for_each(|tenant| digest.add("tenant", tenant));
        self.groups().values().for_each(|group| digest.add("group", group));
        self.jobs().values().for_each(|job| digest.add("job", job));
        self.retired_specs().iter().for_each(|retired| digest.add("retired spec", &retired));
        self.triggers().values().for_each(|trigger| digest.add("trigger", trigger));
        self.fires().values().for_each(|fire| digest.add("fire", fire));
        self.workers().values().for_each(|worker| digest.add("worker", worker));
        self.requests().values().for_each(|request| digest.add("request", request));
        mix(digest.0)
    }
}

/// A sum over records, so that their order does not matter.
struct Digest(u64);

impl Digest {
    fn add<T: Serialize>(&mut self, form: &'static str, record: &T) {
        // No form of ours fails to encode; if one did, it would on every member.
        let bytes = encode(form, record).unwrap_or_default();
        self.0 = self.0.wrapping_add(stable_hash(&[form.as_bytes(), &bytes]));
    }
}
