//! The grammar of the command line. It declares; it does nothing.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Deserialize;

use crate::base::time::{Span, Timestamp};
use crate::cli::address::{JobAddress, TriggerAddress};
use crate::cli::output::Format;

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong usage or refused input, \
                          3 the cluster cannot be reached or did not answer.";

/// A replicated job scheduler that needs nothing beside itself.
#[derive(Debug, Parser)]
#[command(
    name = "horolog",
    version,
    after_help = EXIT_CODES,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
pub struct Global {
    /// Addresses of nodes, tried in turn.
    #[arg(
        long,
        short,
        global = true,
        help_heading = "Options of every command",
        env = "HOROLOG_SERVER",
        hide_env_values = true,
        value_name = "URL[,URL]",
        default_value = "http://127.0.0.1:7601",
        value_delimiter = ','
    )]
    pub server: Vec<String>,
    /// The tenant to work in.
    #[arg(
        long,
        short,
        global = true,
        help_heading = "Options of every command",
        env = "HOROLOG_TENANT",
        hide_env_values = true,
        value_name = "NAME",
        default_value = "default"
    )]
    pub tenant: String,
    /// How results are shown.
    #[arg(
        long,
        short,
        global = true,
        help_heading = "Options of every command",
        value_enum,
        value_name = "FORMAT",
        default_value = "table"
    )]
    pub output: Format,
    /// Any text in this variable turns colours off.
    #[arg(long, global = true, hide = true, env = "NO_COLOR")]
    pub no_color: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Serve(Box<ServeArgs>),
    Dev(DevArgs),
    Worker(WorkerArgs),
    /// Define, list, fire and delete jobs.
    #[command(subcommand)]
    Job(JobCommand),
    /// Look at and change when jobs fire.
    #[command(subcommand)]
    Trigger(TriggerCommand),
    /// Look at what was run, and stop it.
    #[command(subcommand)]
    Fire(FireCommand),
    /// Look at the members, and change who they are.
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Ask what a cron expression means, without a cluster.
    #[command(subcommand)]
    Cron(CronCommand),
    /// Take over schedules from elsewhere.
    #[command(subcommand)]
    Import(ImportCommand),
}

/// Run a node of the cluster.
///
/// The first node makes the cluster with --bootstrap; every other one comes in with --join. A node
/// whose folder holds data goes on with it and needs neither. SIGINT or SIGTERM stops it cleanly.
/// There is no authentication in this version: listen where only those come who may.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    horolog serve --data /var/lib/horolog --bootstrap\n  \
    horolog serve --data /var/lib/horolog --listen 10.0.0.2:7601 \
    --peer-listen 10.0.0.2:7701 \\\n    \
    --join 10.0.0.1:7701\n  \
    horolog serve --data /var/lib/horolog")]
pub struct ServeArgs {
    /// The folder for the node's data; made when missing.
    #[arg(long, value_name = "DIR", env = "HOROLOG_DATA", hide_env_values = true)]
    pub data: Option<PathBuf>,
    /// Where workers, people and tools reach it; 127.0.0.1:7601 when not given.
    #[arg(long, value_name = "ADDR", env = "HOROLOG_LISTEN", hide_env_values = true)]
    pub listen: Option<SocketAddr>,
    /// Where the other nodes reach it; 127.0.0.1:7701 when not given.
    #[arg(long, value_name = "ADDR", env = "HOROLOG_PEER_LISTEN", hide_env_values = true)]
    pub peer_listen: Option<SocketAddr>,
    /// The address under which others find --listen, when it is another.
    #[arg(long, value_name = "ADDR", env = "HOROLOG_ADVERTISE_API", hide_env_values = true)]
    pub advertise_api: Option<String>,
    /// The address under which others find --peer-listen, when it is another.
    #[arg(long, value_name = "ADDR", env = "HOROLOG_ADVERTISE_PEER", hide_env_values = true)]
    pub advertise_peer: Option<String>,
    /// Make a new cluster.
    #[arg(long, conflicts_with = "join")]
    pub bootstrap: bool,
    /// Come into the cluster of these nodes; peer addresses.
    #[arg(
        long,
        value_name = "ADDR[,ADDR]",
        env = "HOROLOG_JOIN",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub join: Vec<String>,
    /// How often a leader shows that it lives.
    #[arg(long, value_name = "DURATION", env = "HOROLOG_HEARTBEAT", hide_env_values = true)]
    pub heartbeat: Option<Span>,
    /// The shortest silence after which a follower stands for election.
    #[arg(long, value_name = "DURATION", env = "HOROLOG_ELECTION_MIN", hide_env_values = true)]
    pub election_min: Option<Span>,
    /// The longest such silence.
    #[arg(long, value_name = "DURATION", env = "HOROLOG_ELECTION_MAX", hide_env_values = true)]
    pub election_max: Option<Span>,
    /// Log entries between two snapshots.
    #[arg(long, value_name = "N", env = "HOROLOG_SNAPSHOT_EVERY", hide_env_values = true)]
    pub snapshot_every: Option<u64>,
    /// How long calls under way may still take after a signal.
    #[arg(long, value_name = "DURATION", env = "HOROLOG_SHUTDOWN_GRACE", hide_env_values = true)]
    pub shutdown_grace: Option<Span>,
    /// Which log lines are written, such as info or horolog=debug; info when not given.
    #[arg(long, value_name = "FILTER", env = "HOROLOG_LOG", hide_env_values = true)]
    pub log: Option<String>,
    /// How log lines are written.
    #[arg(long, value_enum, env = "HOROLOG_LOG_FORMAT", hide_env_values = true)]
    pub log_format: Option<LogFormatArg>,
    /// A JSON file with the same settings, their names with _ for -; flags and environment win.
    #[arg(long, value_name = "FILE", env = "HOROLOG_CONFIG", hide_env_values = true)]
    pub config: Option<String>,
    /// Stop when standard input ends.
    #[arg(long, hide = true)]
    pub stop_with_parent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormatArg {
    Text,
    Json,
}

/// Try it out: three nodes, a worker and a few jobs on this machine.
///
/// Prints each fire as it ends, until SIGINT or SIGTERM, which stops everything. Without --data it
/// leaves nothing behind.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    horolog dev\n  \
    horolog dev --data ./horolog-data --ports-from 8601")]
pub struct DevArgs {
    /// Keep the data here, and go on with it next time; a folder that goes away when not given.
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The first node's API port; the others follow, and peer ports are 100 above.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 7601,
        value_parser = clap::value_parser!(u16).range(1..=65_000)
    )]
    pub ports_from: u16,
}

/// Run work of the executors `command` and `http` on this machine.
///
/// SIGINT or SIGTERM ends it: it takes no more work, lets what it holds finish within the grace,
/// and hands the rest back to others. A second signal does not wait for the grace.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    horolog worker --slots 8\n  \
    horolog worker --pool reports --pool backups --name db-1 --grace 5m\n  \
    horolog worker -s http://n1:7601,http://n2:7601,http://n3:7601")]
pub struct WorkerArgs {
    /// A pool to serve; may be given more than once.
    #[arg(long, value_name = "NAME", default_value = "default", value_delimiter = ',')]
    pub pool: Vec<String>,
    /// Runs side by side.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4,
        value_parser = clap::value_parser!(u32).range(1..=10_000)
    )]
    pub slots: u32,
    /// The worker's name; the machine's when not given.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// How long held work may go on after a signal.
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    pub grace: Span,
    /// How long a stopped program may take between SIGTERM and SIGKILL.
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub kill_grace: Span,
}

#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// Create or replace jobs from a JSON file: one object, or a list of them.
    ///
    /// Each has the fields of the API, with its `name`, and its `group` unless it is `default`.
    #[command(after_help = "Example:\n  \
        echo '{\"name\": \"hello\", \"executor\": {\"command\": {\"argv\": [\"date\"]}},\n         \
        \"triggers\": {\"t\": {\"schedule\": {\"every\": {\"interval\": \"10s\"}}}}}' |\n    \
        horolog job apply -")]
    Apply {
        /// The file, or - for standard input.
        #[arg(value_name = "FILE")]
        file: String,
    },
    /// List jobs.
    List(JobListArgs),
    /// Show a job with its triggers.
    Get {
        job: JobAddress,
    },
    /// Stop its triggers from firing.
    Pause {
        job: JobAddress,
    },
    /// Let its triggers fire again.
    Resume {
        job: JobAddress,
    },
    Fire(JobFireArgs),
    /// Delete a job; its open fires are cancelled.
    Delete {
        job: JobAddress,
    },
}

#[derive(Debug, Args)]
pub struct JobListArgs {
    /// Only of this group.
    #[arg(long, value_name = "NAME")]
    pub group: Option<String>,
    /// Only names that begin so.
    #[arg(long, value_name = "TEXT")]
    pub prefix: Option<String>,
    /// Only in this state.
    #[arg(long, value_name = "STATE", value_parser = ["active", "paused"])]
    pub state: Option<String>,
    /// Most jobs shown.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub limit: usize,
}

/// Fire a job by hand, now or later.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    horolog job fire reports/nightly --wait\n  \
    horolog job fire mailer --payload '{\"to\": \"a@example.org\"}' --delay 15m")]
pub struct JobFireArgs {
    /// The job as group/name, or name in the group default.
    pub job: JobAddress,
    /// JSON handed to the work instead of the job's own payload.
    #[arg(long, value_name = "JSON")]
    pub payload: Option<String>,
    /// Not before this long from now.
    #[arg(long, value_name = "DURATION", conflicts_with = "at")]
    pub delay: Option<Span>,
    /// Not before this time (RFC 3339).
    #[arg(long, value_name = "TIME")]
    pub at: Option<Timestamp>,
    /// Run beside an open fire, whatever the overlap policy says.
    #[arg(long)]
    pub allow_overlap: bool,
    /// Wait until it has ended; fail unless it succeeded.
    #[arg(long)]
    pub wait: bool,
}

#[derive(Debug, Subcommand)]
pub enum TriggerCommand {
    /// List the triggers of a job.
    List {
        /// The job as group/name, or name in the group default.
        job: JobAddress,
    },
    /// Show a trigger.
    Get {
        /// The trigger as group/job/trigger, or job/trigger in the group default.
        trigger: TriggerAddress,
    },
    /// Create or replace a trigger from a JSON file.
    #[command(after_help = "Example:\n  \
        echo '{\"schedule\": {\"cron\": {\"expression\": \"0 3 * * *\",\n         \
        \"timezone\": \"Europe/Berlin\"}}}' | horolog trigger apply reports/nightly/three -")]
    Apply {
        /// The trigger as group/job/trigger, or job/trigger in the group default.
        trigger: TriggerAddress,
        /// The file, or - for standard input.
        #[arg(value_name = "FILE")]
        file: String,
    },
    /// Stop it from firing.
    Pause {
        /// The trigger as group/job/trigger, or job/trigger in the group default.
        trigger: TriggerAddress,
    },
    /// Let it fire again; what was missed is treated by its misfire policy.
    Resume {
        /// The trigger as group/job/trigger, or job/trigger in the group default.
        trigger: TriggerAddress,
    },
    /// Delete a trigger.
    Delete {
        /// The trigger as group/job/trigger, or job/trigger in the group default.
        trigger: TriggerAddress,
    },
    /// Show the coming times of a trigger.
    Preview {
        /// The trigger as group/job/trigger, or job/trigger in the group default.
        trigger: TriggerAddress,
        /// Times wanted.
        #[arg(long, value_name = "N", default_value_t = 10)]
        count: u32,
        /// Only times after this one (RFC 3339); now when not given.
        #[arg(long, value_name = "TIME")]
        after: Option<Timestamp>,
    },
}

#[derive(Debug, Subcommand)]
pub enum FireCommand {
    /// List fires, newest first.
    List(FireListArgs),
    /// Show a fire: its attempts, what they printed, and why it ended as it did.
    Get {
        /// The fire's id, as the lists show it.
        #[arg(value_name = "FIRE")]
        id: String,
    },
    /// Cancel a fire; a running one is stopped by its worker.
    Cancel {
        /// The fire's id, as the lists show it.
        #[arg(value_name = "FIRE")]
        id: String,
    },
    /// Show fires as they change, until interrupted.
    Watch {
        /// Only of this job.
        #[arg(long, value_name = "JOB")]
        job: Option<JobAddress>,
    },
}

#[derive(Debug, Args)]
pub struct FireListArgs {
    /// Only of this job.
    #[arg(long, value_name = "JOB")]
    pub job: Option<JobAddress>,
    /// Only in this state.
    #[arg(long, value_name = "STATE", value_parser = [
        "waiting", "ready", "running", "succeeded", "failed", "skipped", "cancelled",
    ])]
    pub state: Option<String>,
    /// Most fires shown.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: usize,
}

#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// Show the members and how far each has come.
    Status,
    /// Remove a member for good. Its number is never used again.
    Remove {
        /// The member's number, as the status shows it.
        #[arg(value_name = "NODE")]
        node: u64,
    },
    /// Hand leadership over.
    Transfer {
        /// The voter that shall lead; the one that is most up to date when not given.
        #[arg(value_name = "NODE")]
        to: Option<u64>,
    },
}

#[derive(Debug, Subcommand)]
pub enum CronCommand {
    Next(CronNextArgs),
}

/// Show when a cron expression fires next.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    horolog cron next '0 3 * * mon-fri' --tz Europe/Berlin\n  \
    horolog cron next '0 0 12 ? * 6#3' --dialect quartz --after 2026-01-01T00:00:00Z -o json")]
pub struct CronNextArgs {
    /// The expression, quoted.
    #[arg(value_name = "EXPR")]
    pub expression: String,
    /// How to read it: five fields, or six to seven with seconds first.
    #[arg(long, value_enum, default_value = "unix")]
    pub dialect: CronDialect,
    /// An IANA name or an offset such as +05:30.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub tz: String,
    /// Only times after this one (RFC 3339); now when not given.
    #[arg(long, value_name = "TIME")]
    pub after: Option<Timestamp>,
    /// Times wanted.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=1_000)
    )]
    pub count: u32,
    /// The job that an H in the expression is hashed for, as tenant/group/name.
    #[arg(long, value_name = "JOB")]
    pub job: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CronDialect {
    Unix,
    Quartz,
}

#[derive(Debug, Subcommand)]
pub enum ImportCommand {
    Crontab(ImportCrontabArgs),
}

/// Make a job of each line of a crontab, and report what was taken, changed and refused.
///
/// Importing the same file again changes nothing: names follow from the file and the line's own
/// words.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    crontab -l | horolog import crontab - --dry-run\n  \
    horolog import crontab /etc/crontab --tz Europe/Berlin\n  \
    horolog import crontab /etc/cron.d/backup --group backups --pool db")]
pub struct ImportCrontabArgs {
    /// The crontab, or - for standard input.
    #[arg(value_name = "FILE")]
    pub file: String,
    /// Each line names a user before its command; guessed for /etc/crontab and /etc/cron.d.
    #[arg(long)]
    pub system: bool,
    /// The group the jobs come into.
    #[arg(long, value_name = "NAME", default_value = "crontab")]
    pub group: String,
    /// The pool whose workers run them.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub pool: String,
    /// The zone of lines that no CRON_TZ stands above. cron uses its machine's.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    pub tz: String,
    /// Report only; ask no server and change nothing.
    #[arg(long)]
    pub dry_run: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_grammar_has_no_contradictions() {
        Cli::command().debug_assert();
    }
}
