//! The metrics of a node: counters fed by what it applies, gauges read when somebody asks.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeLabelValue, EncodeMetric, LabelValueEncoder,
};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use tokio::sync::broadcast::error::RecvError;

use crate::base::metrics::{self, Metric};
use crate::base::time::Span;
use crate::machine::effect::Effect;
use crate::model::fire::{Fire, FireState};
use crate::replica::{AppliedEffects, Replica};

/// From a millisecond to a minute, in seconds.
const BUCKETS: [f64; 14] =
    [0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    state: EndState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum EndState {
    Succeeded,
    Failed,
    Skipped,
    Cancelled,
}

impl EncodeLabelValue for EndState {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        let text = match self {
            EndState::Succeeded => "succeeded",
            EndState::Failed => "failed",
            EndState::Skipped => "skipped",
            EndState::Cancelled => "cancelled",
        };
        text.encode(encoder)
    }
}

/// Counters over the entries this node has applied since it started.
#[derive(Clone)]
struct Counters {
    ended: Family<Ended, Counter>,
    fenced: Counter,
    lateness: Histogram,
    duration: Histogram,
    effects_missed: Arc<AtomicU64>,
}

/// Builds the registry of a node and begins to feed it; ends with the replica.
#[must_use]
pub fn start(replica: &Replica) -> Registry {
    let counters = Counters {
        ended: Family::default(),
        fenced: Counter::default(),
        lateness: Histogram::new(BUCKETS),
        duration: Histogram::new(BUCKETS),
        effects_missed: Arc::default(),
    };
    let mut registry = Registry::with_prefix(metrics::PREFIX);
    let Metric { name, help } = metrics::FIRES_ENDED;
    registry.register(name, help, counters.ended.clone());
    let Metric { name, help } = metrics::FIRES_FENCED;
    registry.register(name, help, counters.fenced.clone());
    let Metric { name, help } = metrics::START_LATENESS;
    registry.register_with_unit(name, help, Unit::Seconds, counters.lateness.clone());
    let Metric { name, help } = metrics::RUN_DURATION;
    registry.register_with_unit(name, help, Unit::Seconds, counters.duration.clone());
    let missed = counters.effects_missed.clone();
    registry.register_collector(Box::new(Gauges { replica: replica.clone(), missed }));

    tokio::spawn(follow(replica.effects(), counters));
    registry
}

async fn follow(
    mut effects: tokio::sync::broadcast::Receiver<Arc<AppliedEffects>>,
    counters: Counters,
) {
    loop {
        match effects.recv().await {
            Ok(applied) => {
                for effect in &applied.effects {
                    counters.take_in(effect);
                }
            }
            Err(RecvError::Lagged(missed)) => {
                counters.effects_missed.fetch_add(missed, Ordering::Relaxed);
            }
            Err(RecvError::Closed) => return,
        }
    }
}

impl Counters {
    fn take_in(&self, effect: &Effect) {
        match effect {
            Effect::FireChanged(fire) => self.take_in_fire(fire),
            Effect::Fenced { fire: _ } => {
                self.fenced.inc();
            }
            Effect::Granted { worker: _, fires: _ } => {}
        }
    }

    fn take_in_fire(&self, fire: &Fire) {
        let ended = match fire.state {
            FireState::Running => {
                let first = fire.attempt_count == 1;
                if let Some(lease) = fire.lease.filter(|_| first) {
                    self.lateness.observe(seconds(lease.granted_at.since(fire.due_at)));
                }
                return;
            }
            FireState::Waiting(_) | FireState::Ready => return,
            FireState::Succeeded => EndState::Succeeded,
            FireState::Failed => EndState::Failed,
            FireState::Skipped(_) => EndState::Skipped,
            FireState::Cancelled => EndState::Cancelled,
        };
        let count = fire.folded.map_or(1, |folded| folded.count);
        self.ended.get_or_create(&Ended { state: ended }).inc_by(count);
        if let (Some(attempt), Some(ended_at)) = (fire.attempts.last(), fire.ended_at) {
            self.duration.observe(seconds(ended_at.since(attempt.granted_at)));
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "a metric need not tell 300 years to the ms")]
fn seconds(span: Span) -> f64 {
    span.as_ms() as f64 / 1_000.0
}

/// Reads the state when a scrape comes, so that keeping the numbers costs nothing in between.
struct Gauges {
    replica: Replica,
    missed: Arc<AtomicU64>,
}

impl fmt::Debug for Gauges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gauges").finish_non_exhaustive()
    }
}

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let state = self.replica.view().state;
        let status = self.replica.status();
        let index = state.index();
        let disk = self.replica.disk_usage();
        let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        let gauges = [
            (metrics::JOBS, count(state.jobs().len())),
            (metrics::TRIGGERS, count(state.triggers().len())),
            (metrics::FIRES_OPEN, count(state.fires().len())),
            (metrics::FIRES_READY, count(index.ready().len())),
            (metrics::FIRES_WAITING, count(index.waiting().len())),
            (metrics::LEASES_HELD, count(index.running().len())),
            (metrics::WORKERS, count(state.workers().len())),
            (metrics::RAFT_TERM, status.term),
            (metrics::RAFT_LEADING, u64::from(status.leading)),
            (metrics::RAFT_APPLIED, status.applied_index),
            (metrics::RAFT_COMMITTED, status.committed_index),
            (metrics::LOG_BYTES, disk.log_bytes),
            (metrics::RECORDS_BYTES, disk.records_bytes),
        ];
        for (metric, value) in gauges {
            let gauge = ConstGauge::new(value);
            let kind = gauge.metric_type();
            gauge.encode(encoder.encode_descriptor(metric.name, metric.help, None, kind)?)?;
        }
        let counters = [
            (metrics::LOG_SYNCS, disk.log_syncs),
            (metrics::EFFECTS_MISSED, self.missed.load(Ordering::Relaxed)),
        ];
        for (metric, value) in counters {
            let counter = ConstCounter::new(value);
            let kind = counter.metric_type();
            counter.encode(encoder.encode_descriptor(metric.name, metric.help, None, kind)?)?;
        }
        Ok(())
    }
}
