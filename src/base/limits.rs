//! Every limit of the system, with its unit and its reason, in one place.
//!
//! A limit that refuses input is named in the refusal. The relations between limits are asserted
//! when the program is compiled.

use crate::base::time::Span;

/// Longest name of anything, in bytes: fits a file name, a label and a log line.
pub const NAME_BYTES_MAX: usize = 128;
/// Longest free text (description, reason, note), in bytes.
pub const TEXT_BYTES_MAX: usize = 1_024;
/// Longest cron expression, in bytes; refused before it is parsed.
pub const CRON_BYTES_MAX: usize = 256;
/// Longest error message or kind kept from a worker, in bytes.
pub const ERROR_BYTES_MAX: usize = 4 * 1_024;
/// Largest payload of a job, trigger or fire, in bytes of JSON.
pub const PAYLOAD_BYTES_MAX: usize = 32 * 1_024;
/// Longest URL of a job, in bytes.
pub const URL_BYTES_MAX: usize = 2 * 1_024;
/// Largest result a worker may hand back, in bytes of JSON.
pub const RESULT_BYTES_MAX: usize = 8 * 1_024;
/// Longest tail of a command's output kept on its attempt, in bytes. The rest stays with the
/// worker.
pub const OUTPUT_BYTES_MAX: usize = 8 * 1_024;
/// Most environment variables, arguments, headers or labels of one job or worker.
pub const ENTRIES_MAX: usize = 64;
/// Most triggers of one job.
pub const TRIGGERS_PER_JOB_MAX: usize = 64;
/// Largest stored value: above this sled spills to files that it never syncs.
pub const VALUE_BYTES_MAX: usize = 64 * 1_024;
/// Largest definition of a job, trigger or worker as it is stored, in bytes: a remembered reply
/// holds it together with its key.
pub const DEFINITION_BYTES_MAX: usize = 60 * 1_024;
/// Largest body of an HTTP request, in bytes; holds a full batch of answers.
pub const BODY_BYTES_MAX: usize = 2 * 1_024 * 1_024;

/// Most jobs of the cluster, kept in memory on every member.
pub const JOBS_MAX: usize = 1_000_000;
/// Most open fires of the cluster, kept in memory on every member; above it requests get 503.
pub const OPEN_FIRES_MAX: usize = 2_000_000;
/// Most open fires of one job. A scheduled occurrence above it is accounted for as dropped.
pub const OPEN_FIRES_PER_JOB_MAX: usize = 1_000_000;

/// Most fires one log entry records, so that no entry holds up the others for long.
pub const FIRES_PER_ENTRY_MAX: usize = 512;
/// Most grants one log entry makes.
pub const GRANTS_PER_ENTRY_MAX: usize = 512;
/// Most fires of one catch-up (`fire_all`); what is beyond is accounted for as outside the limit.
pub const CATCHUP_COUNT_MAX: u32 = 1_000;
/// Most strides (days of a cron schedule) one call counts of what was missed: eleven years at once,
/// in about a millisecond. Longer outages take several calls.
pub const MISFIRE_STRIDES_MAX: u32 = 4_096;
/// Most items of one batch call of a worker.
pub const WORK_BATCH_MAX: usize = 1_000;
/// Most slots of one worker.
pub const WORKER_SLOTS_MAX: u32 = 10_000;
/// Most pools one worker serves.
pub const WORKER_POOLS_MAX: usize = 64;
/// Largest page of a list.
pub const PAGE_SIZE_MAX: usize = 1_000;
/// Page of a list when none is asked for.
pub const PAGE_SIZE_DEFAULT: usize = 100;
/// Attempts kept in full on one fire; older ones are counted only.
pub const ATTEMPTS_KEPT_MAX: usize = 32;
/// Most attempts a retry policy may ask for.
pub const ATTEMPTS_MAX: u32 = 1_000;

/// How long an idempotency key of a request is remembered.
pub const REQUEST_KEEP: Span = Span::from_hours(24);
/// Most remembered requests; above it the oldest are forgotten first.
pub const REQUESTS_MAX: usize = 200_000;
/// Longest idempotency key of a request, in bytes.
pub const REQUEST_KEY_BYTES_MAX: usize = 255;

/// Shortest and longest lease of work, and the one used when none is asked for.
pub const LEASE_TTL_MIN: Span = Span::from_secs(1);
pub const LEASE_TTL_MAX: Span = Span::from_hours(1);
pub const LEASE_TTL_DEFAULT: Span = Span::from_secs(30);
/// How long a worker is `live` after its last call.
pub const WORKER_TTL: Span = Span::from_secs(60);
/// How long calls under way may take once a node was asked to stop.
pub const SHUTDOWN_GRACE: Span = Span::from_secs(5);
/// Longest long poll.
pub const POLL_WAIT_MAX: Span = Span::from_secs(60);
/// An occurrence recorded later than this after its time is a misfire. Longer than a change of
/// leader takes.
pub const MISFIRE_GRACE_DEFAULT: Span = Span::from_secs(10);
/// How far back `fire_all` and `fire_once` reach when the trigger does not say.
pub const CATCHUP_WINDOW_DEFAULT: Span = Span::from_days(1);
/// Shortest interval of an `every` schedule.
pub const INTERVAL_MIN: Span = Span::from_secs(1);
/// Longest interval, delay or time-out.
pub const DELAY_MAX: Span = Span::from_days(3_660);
/// Ended fires kept for each job, unless the job says otherwise, and the most it may ask for.
pub const HISTORY_COUNT_DEFAULT: u32 = 1_000;
pub const HISTORY_COUNT_MAX: u32 = 100_000;
/// Most ended fires that one entry forgets for their age.
pub const HISTORY_PRUNE_MAX: u32 = 1_000;
/// How long ended fires are kept at most, unless the job says otherwise.
pub const HISTORY_KEEP_DEFAULT: Span = Span::from_days(30);

/// Largest distance between a leader's clock and the last stamp of the log it may claim.
pub const CLOCK_LEAD_MAX: Span = Span::from_secs(60);

const _: () = assert!(PAYLOAD_BYTES_MAX + TEXT_BYTES_MAX < VALUE_BYTES_MAX);
const _: () = assert!(RESULT_BYTES_MAX + OUTPUT_BYTES_MAX + ERROR_BYTES_MAX < VALUE_BYTES_MAX);
const _: () = assert!(DEFINITION_BYTES_MAX + REQUEST_KEY_BYTES_MAX + 1_024 < VALUE_BYTES_MAX);
const _: () = assert!(PAYLOAD_BYTES_MAX + ATTEMPTS_KEPT_MAX * 512 < VALUE_BYTES_MAX);
const _: () = assert!(PAGE_SIZE_DEFAULT <= PAGE_SIZE_MAX);
const _: () =
    assert!(FIRES_PER_ENTRY_MAX < u16::MAX as usize, "ordinals inside an entry are 16 bits");
const _: () = assert!(GRANTS_PER_ENTRY_MAX < u16::MAX as usize);
const _: () = assert!(LEASE_TTL_MIN.as_ms() < LEASE_TTL_DEFAULT.as_ms());
const _: () = assert!(LEASE_TTL_DEFAULT.as_ms() < LEASE_TTL_MAX.as_ms());
const _: () = assert!(OPEN_FIRES_PER_JOB_MAX <= OPEN_FIRES_MAX);
const _: () = assert!(
    MISFIRE_STRIDES_MAX > CATCHUP_COUNT_MAX,
    "a call that cannot count all that was missed still knows some that are over the count"
);
