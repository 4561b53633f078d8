//! The one way in which apply touches the state: each call puts a record into its table, keeps the
//! index true and notes the change, so that no command can forget one of the three.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::bounded::{Name, clip};
use crate::base::limits;
use crate::base::time::Timestamp;
use crate::machine::Applied;
use crate::machine::change::Change;
use crate::machine::effect::Effect;
use crate::machine::index::due_position;
use crate::machine::reply::Reply;
use crate::machine::state::{Meta, RequestRecord, State};
use crate::model::fire::{AttemptReport, Fire, FireState};
use crate::model::id::{FireId, GroupKey, JobId, Revision, RunId, Seq, TriggerId, WorkerId};
use crate::model::job::{Job, Tally};
use crate::model::tenant::{Group, Tenant};
use crate::model::trigger::Trigger;
use crate::model::worker::Worker;

/// Ended fires above a job's `history_count` that are kept until the next removal, so that not
/// every end of a fire costs a removal.
const HISTORY_SLACK: u64 = 32;
/// Most ended fires of a job that one end of a fire removes.
const HISTORY_STEP_MAX: u64 = 128;

/// One entry being applied.
pub(in crate::machine) struct Context<'a> {
    state: &'a mut State,
    index: u64,
    now: Timestamp,
    ordinals: u16,
    changes: Vec<Change>,
    effects: Vec<Effect>,
    granted: BTreeMap<WorkerId, Vec<FireId>>,
    granted_jobs: BTreeSet<JobId>,
    became_ready: Vec<FireId>,
}

impl<'a> Context<'a> {
    /// Moves the state's stamp to the entry's, unless that would be back in time.
    pub(in crate::machine) fn new(
        state: &'a mut State,
        index: u64,
        stamp: Timestamp,
    ) -> Context<'a> {
        let moves = stamp > state.meta.stamp;
        let now = state.meta.stamp.max(stamp);
        let mut context = Context {
            state,
            index,
            now,
            ordinals: 0,
            changes: Vec::new(),
            effects: Vec::new(),
            granted: BTreeMap::new(),
            granted_jobs: BTreeSet::new(),
            became_ready: Vec::new(),
        };
        if moves {
            let cluster_id = context.state.meta.cluster_id.clone();
            context.put_meta(Meta { cluster_id, stamp });
        }
        context
    }

    pub(in crate::machine) fn finish(mut self, reply: Reply) -> Applied {
        for (worker, fires) in self.granted {
            self.effects.push(Effect::Granted { worker, fires });
        }
        Applied { reply, changes: self.changes, effects: self.effects }
    }

    pub(in crate::machine) fn state(&self) -> &State {
        self.state
    }

    /// The index of the entry, which is the token of what it grants.
    pub(in crate::machine) fn index(&self) -> u64 {
        self.index
    }

    /// The time: the highest stamp up to and including this entry's.
    pub(in crate::machine) fn now(&self) -> Timestamp {
        self.now
    }

    /// How many more numbers [`Context::next_seq`] can make in this entry.
    pub(in crate::machine) fn seqs_left(&self) -> usize {
        usize::from(u16::MAX - self.ordinals)
    }

    /// A number that nothing else has. The caller has looked at [`Context::seqs_left`] when its
    /// command can ask for many.
    pub(in crate::machine) fn next_seq(&mut self) -> Seq {
        let seq = Seq::new(self.index, self.ordinals);
        self.ordinals = self.ordinals.saturating_add(1);
        seq
    }

    pub(in crate::machine) fn put_meta(&mut self, meta: Meta) {
        self.state.meta = meta.clone();
        self.changes.push(Change::PutMeta(meta));
    }

    pub(in crate::machine) fn put_tenant(&mut self, tenant: Tenant) -> Arc<Tenant> {
        let tenant = Arc::new(tenant);
        self.state.tenants.insert(tenant.name.clone(), Arc::clone(&tenant));
        self.changes.push(Change::PutTenant(Arc::clone(&tenant)));
        tenant
    }

    pub(in crate::machine) fn drop_tenant(&mut self, name: &Name) {
        if self.state.tenants.remove(name).is_some() {
            self.changes.push(Change::DropTenant(name.clone()));
        }
    }

    pub(in crate::machine) fn put_group(&mut self, group: Group) -> Arc<Group> {
        let key = group.key.clone();
        let is_paused = group.paused_at.is_some();
        let was_paused = self.state.is_group_paused(&key);
        let group = Arc::new(group);
        self.state.groups.insert(key.clone(), Arc::clone(&group));
        self.changes.push(Change::PutGroup(Arc::clone(&group)));
        if was_paused != is_paused {
            let jobs: Vec<JobId> = self.state.jobs_in(&key).map(|job| job.id).collect();
            for job in jobs {
                self.reindex_triggers_of(job);
            }
        }
        group
    }

    pub(in crate::machine) fn drop_group(&mut self, key: &GroupKey) {
        if self.state.groups.remove(key).is_some() {
            self.changes.push(Change::DropGroup(key.clone()));
        }
    }

    /// A definition that open fires run with is kept when this replaces it.
    pub(in crate::machine) fn put_job(&mut self, job: Job) -> Arc<Job> {
        let id = job.id;
        let job = Arc::new(job);
        let old = self.state.jobs.insert(id, Arc::clone(&job));
        self.changes.push(Change::PutJob(Arc::clone(&job)));
        let Some(old) = old else {
            self.state.index.job_by_key.insert(Arc::clone(&job.key), id);
            return job;
        };
        if old.revision != job.revision && self.state.index.open_with(id, old.revision) > 0 {
            self.state.retired_specs.insert((id, old.revision), Arc::clone(&old.spec));
            self.changes.push(Change::PutRetiredSpec(id, old.revision, Arc::clone(&old.spec)));
        }
        if old.paused_at.is_some() != job.paused_at.is_some() {
            self.reindex_triggers_of(id);
        }
        job
    }

    /// The job's triggers and open fires are gone already.
    pub(in crate::machine) fn drop_job(&mut self, id: JobId) {
        if let Some(job) = self.state.jobs.remove(&id) {
            self.state.index.job_by_key.remove(&*job.key);
            self.changes.push(Change::DropJob(id));
        }
    }

    pub(in crate::machine) fn put_trigger(&mut self, trigger: Trigger) -> Arc<Trigger> {
        let trigger = Arc::new(trigger);
        let old = self.state.triggers.insert(trigger.id, Arc::clone(&trigger));
        if let Some(old) = old {
            if let Some(position) = due_position(&old) {
                self.state.index.due_triggers.remove(&position);
            }
        } else {
            let name = (trigger.job, trigger.name.clone());
            self.state.index.trigger_by_name.insert(name, trigger.id);
        }
        self.enter_due(&trigger);
        self.changes.push(Change::PutTrigger(Arc::clone(&trigger)));
        trigger
    }

    pub(in crate::machine) fn drop_trigger(&mut self, id: TriggerId) {
        if let Some(trigger) = self.state.triggers.remove(&id) {
            if let Some(position) = due_position(&trigger) {
                self.state.index.due_triggers.remove(&position);
            }
            self.state.index.trigger_by_name.remove(&(trigger.job, trigger.name.clone()));
            self.changes.push(Change::DropTrigger(id));
        }
    }

    /// Puts an open fire, new or changed.
    pub(in crate::machine) fn put_fire(&mut self, fire: Fire) -> Arc<Fire> {
        let id = fire.id;
        let fire = Arc::new(fire);
        let old = self.state.fires.insert(id, Arc::clone(&fire));
        let was_ready = old.as_ref().is_some_and(|old| old.state == FireState::Ready);
        if fire.state == FireState::Ready && !was_ready {
            self.became_ready.push(id);
        }
        self.move_fire(old.as_deref(), Some(&fire));
        self.changes.push(Change::PutFire(Arc::clone(&fire)));
        self.effects.push(Effect::FireChanged(Arc::clone(&fire)));
        fire
    }

    /// Takes an open fire that ended out of its table and makes it history.
    pub(in crate::machine) fn end_fire(&mut self, fire: Fire) -> Arc<Fire> {
        let fire = Arc::new(fire);
        let old = self.state.fires.remove(&fire.id);
        self.move_fire(old.as_deref(), None);
        self.changes.push(Change::EndFire(Arc::clone(&fire)));
        self.effects.push(Effect::FireChanged(Arc::clone(&fire)));
        self.drop_unused_spec(fire.id.job, fire.job_revision);
        self.add_to_history(&fire);
        fire
    }

    /// Puts an ended fire that never was open.
    pub(in crate::machine) fn put_history(&mut self, fire: Fire) -> Arc<Fire> {
        let fire = Arc::new(fire);
        self.changes.push(Change::PutHistory(Arc::clone(&fire)));
        self.effects.push(Effect::FireChanged(Arc::clone(&fire)));
        self.add_to_history(&fire);
        fire
    }

    /// Keeps what an attempt left behind, if it left anything.
    pub(in crate::machine) fn put_attempt(&mut self, run: RunId, report: &AttemptReport) {
        if !report.is_empty() {
            self.changes.push(Change::PutAttempt(run, Arc::new(storable(report))));
        }
    }

    pub(in crate::machine) fn prune_history(&mut self, before: Timestamp, count: u32) {
        self.changes.push(Change::PruneHistory(before, count));
    }

    pub(in crate::machine) fn put_worker(&mut self, worker: Worker) -> Arc<Worker> {
        let worker = Arc::new(worker);
        self.state.workers.insert(worker.id, Arc::clone(&worker));
        self.changes.push(Change::PutWorker(Arc::clone(&worker)));
        worker
    }

    pub(in crate::machine) fn drop_worker(&mut self, id: WorkerId) {
        if self.state.workers.remove(&id).is_some() {
            self.changes.push(Change::DropWorker(id));
        }
    }

    pub(in crate::machine) fn put_request(&mut self, record: RequestRecord) {
        let key = (record.tenant.clone(), record.key.clone());
        let age = (record.answered_at, record.tenant.clone(), record.key.clone());
        let record = Arc::new(record);
        self.state.requests.insert(key, Arc::clone(&record));
        self.state.index.requests_by_age.insert(age);
        self.changes.push(Change::PutRequest(record));
    }

    pub(in crate::machine) fn drop_request(&mut self, tenant: &Name, key: &str) {
        let id = (tenant.clone(), key.to_owned());
        if let Some(record) = self.state.requests.remove(&id) {
            let age = (record.answered_at, id.0.clone(), id.1.clone());
            self.state.index.requests_by_age.remove(&age);
            self.changes.push(Change::DropRequest(id.0, id.1));
        }
    }

    /// A job gets at most one grant in an entry, for its tokens strictly grow.
    pub(in crate::machine) fn has_granted(&self, job: JobId) -> bool {
        self.granted_jobs.contains(&job)
    }

    pub(in crate::machine) fn note_grant(&mut self, fire: FireId, worker: WorkerId) {
        self.granted_jobs.insert(fire.job);
        self.granted.entry(worker).or_default().push(fire);
    }

    pub(in crate::machine) fn note_fenced(&mut self, fire: FireId) {
        self.effects.push(Effect::Fenced { fire });
    }

    /// The fires that this entry made ready so far, in that order.
    pub(in crate::machine) fn take_became_ready(&mut self) -> Vec<FireId> {
        std::mem::take(&mut self.became_ready)
    }

    fn move_fire(&mut self, old: Option<&Fire>, new: Option<&Fire>) {
        let Some(fire) = new.or(old) else { return };
        let State { jobs, retired_specs, index, .. } = &mut *self.state;
        let spec = match jobs.get(&fire.id.job) {
            Some(job) if job.revision == fire.job_revision => Some(&job.spec),
            _ => retired_specs.get(&(fire.id.job, fire.job_revision)),
        };
        crate::invariant!(spec.is_some(), "open fires have a definition: {}", fire.id);
        if let Some(spec) = spec {
            index.move_fire(old, new, spec);
        }
    }

    fn drop_unused_spec(&mut self, job: JobId, revision: Revision) {
        let is_used = self.state.index.open_with(job, revision) > 0;
        if !is_used && self.state.retired_specs.remove(&(job, revision)).is_some() {
            self.changes.push(Change::DropRetiredSpec(job, revision));
        }
    }

    fn add_to_history(&mut self, fire: &Fire) {
        let Some(old) = self.state.jobs.get(&fire.id.job) else { return };
        let mut job = Job::clone(old);
        let occurrences = fire.folded.map_or(1, |folded| folded.count);
        job.tally = tally_with(job.tally, fire.state, occurrences);
        job.history_len = job.history_len.saturating_add(1);
        let kept = u64::from(job.spec.history_count);
        if job.history_len > kept.saturating_add(HISTORY_SLACK) {
            let step = (job.history_len - kept).min(HISTORY_STEP_MAX);
            job.history_len -= step;
            let step = u32::try_from(step).unwrap_or(u32::MAX);
            self.changes.push(Change::PruneJobHistory(job.id, step));
        }
        self.put_job(job);
    }

    fn reindex_triggers_of(&mut self, job: JobId) {
        let triggers: Vec<Arc<Trigger>> = self.state.triggers_of(job).map(Arc::clone).collect();
        for trigger in triggers {
            if let Some(position) = due_position(&trigger) {
                self.state.index.due_triggers.remove(&position);
            }
            self.enter_due(&trigger);
        }
    }

    fn enter_due(&mut self, trigger: &Trigger) {
        if let Some(position) = due_position(trigger)
            && !self.state.is_job_paused(trigger.job)
        {
            self.state.index.due_triggers.insert(position);
        }
    }
}

/// The report in its bounds, whatever the entry held: the store refuses a larger record.
fn storable(report: &AttemptReport) -> AttemptReport {
    let fits = |result: &&String| result.len() <= limits::RESULT_BYTES_MAX;
    let clipped = |text: &String, bytes_max| clip(text, bytes_max).to_owned();
    let message = report.error_message.as_ref();
    let output = report.output.as_ref();
    let is_cut = output.is_some_and(|output| output.len() > limits::OUTPUT_BYTES_MAX);
    AttemptReport {
        result: report.result.as_ref().filter(fits).cloned(),
        error_message: message.map(|text| clipped(text, limits::ERROR_BYTES_MAX)),
        output: output.map(|text| clipped(text, limits::OUTPUT_BYTES_MAX)),
        output_truncated: report.output_truncated || is_cut,
        exit_code: report.exit_code,
    }
}

fn tally_with(tally: Tally, state: FireState, occurrences: u64) -> Tally {
    let mut tally = tally;
    let counter = match state {
        FireState::Succeeded => &mut tally.succeeded,
        FireState::Failed => &mut tally.failed,
        FireState::Skipped(_) => &mut tally.skipped,
        FireState::Cancelled => &mut tally.cancelled,
        FireState::Waiting(_) | FireState::Ready | FireState::Running => return tally,
    };
    *counter = counter.saturating_add(occurrences);
    tally
}
