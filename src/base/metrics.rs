//! The names, units and meanings of every metric, in one list; the exporter lives in `node`.

/// Prefix of every metric's name.
pub const PREFIX: &str = "horolog";

/// A metric as it is registered: without the prefix, the unit and the suffix of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    pub name: &'static str,
    pub help: &'static str,
}

/// Counter by method, route and status.
pub const HTTP_REQUESTS: Metric =
    Metric { name: "http_requests", help: "Answered calls of the HTTP API" };
/// Histogram of seconds by method and route; long polls are in it with the time they waited.
pub const HTTP_REQUEST: Metric =
    Metric { name: "http_request", help: "Time from the head of a call to its answer" };
pub const FIRES_ENDED: Metric =
    Metric { name: "fires_ended", help: "Fires that ended, by state, as this node applied them" };
pub const FIRES_FENCED: Metric =
    Metric { name: "fires_fenced", help: "Calls refused because their fencing token was stale" };
pub const START_LATENESS: Metric =
    Metric { name: "start_lateness", help: "From a fire's due time to its first grant" };
pub const RUN_DURATION: Metric =
    Metric { name: "run_duration", help: "From the last grant of a fire to its end" };
pub const EFFECTS_MISSED: Metric = Metric {
    name: "effects_missed",
    help: "Changes the counters above did not see, for the node was too busy",
};
pub const JOBS: Metric = Metric { name: "jobs", help: "Jobs" };
pub const TRIGGERS: Metric = Metric { name: "triggers", help: "Triggers" };
pub const FIRES_OPEN: Metric = Metric { name: "fires_open", help: "Fires that have not ended" };
pub const FIRES_READY: Metric =
    Metric { name: "fires_ready", help: "Fires that wait for a worker" };
pub const FIRES_WAITING: Metric = Metric {
    name: "fires_waiting",
    help: "Fires that wait for an instant: their own, or a retry's",
};
pub const LEASES_HELD: Metric = Metric { name: "leases_held", help: "Attempts that run" };
pub const WORKERS: Metric = Metric { name: "workers", help: "Workers that are registered" };
pub const RAFT_TERM: Metric = Metric { name: "raft_term", help: "The term this node knows" };
pub const RAFT_LEADING: Metric = Metric { name: "raft_leading", help: "1 while this node leads" };
pub const RAFT_APPLIED: Metric =
    Metric { name: "raft_applied_index", help: "The last entry applied here" };
pub const RAFT_COMMITTED: Metric =
    Metric { name: "raft_committed_index", help: "The last entry known to be committed" };
pub const LOG_BYTES: Metric = Metric { name: "log_bytes", help: "Size of the Raft log on disk" };
pub const LOG_SYNCS: Metric =
    Metric { name: "log_syncs", help: "Times the Raft log was synced to disk" };
pub const RECORDS_BYTES: Metric =
    Metric { name: "records_bytes", help: "Size of the records on disk" };
