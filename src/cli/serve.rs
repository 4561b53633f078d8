//! `horolog serve`: a node of the cluster, from flags, the environment and a file.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::AsyncReadExt;

use crate::base::time::Span;
use crate::cli::args::{LogFormatArg, ServeArgs};
use crate::cli::error::CliError;
use crate::cli::input::read_input;
use crate::cli::signals::StopSignals;
use crate::node;
use crate::node::config::{NodeConfig, StartMode};
use crate::node::observe::{self, LogFormat};

const LOG_DEFAULT: &str = "info";

/// # Errors
/// [`CliError::Usage`] for settings that cannot be, [`CliError::Failed`] when the node cannot start
/// or has to stop.
pub async fn run(args: ServeArgs) -> Result<(), CliError> {
    let mut signals = StopSignals::listen()?;
    let file = match &args.config {
        Some(path) => read_file(path).await?,
        None => ServeFile::default(),
    };
    let filter = args.log.clone().or_else(|| file.log.clone());
    let format = match args.log_format.or(file.log_format).unwrap_or(LogFormatArg::Text) {
        LogFormatArg::Text => LogFormat::Text,
        LogFormatArg::Json => LogFormat::Json,
    };
    let with_parent = args.stop_with_parent;
    let config = settle(args, file)?;
    observe::start(filter.as_deref().unwrap_or(LOG_DEFAULT), format);
    let shutdown = async move {
        tokio::select! {
            () = signals.next() => {}
            () = parent_gone(with_parent) => {}
        }
    };
    node::run(config, shutdown).await.map_err(|error| CliError::Failed(error.to_string()))
}

/// The same settings as the flags, in a JSON file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ServeFile {
    data: Option<PathBuf>,
    listen: Option<SocketAddr>,
    peer_listen: Option<SocketAddr>,
    advertise_api: Option<String>,
    advertise_peer: Option<String>,
    bootstrap: bool,
    join: Vec<String>,
    heartbeat: Option<String>,
    election_min: Option<String>,
    election_max: Option<String>,
    snapshot_every: Option<u64>,
    shutdown_grace: Option<String>,
    log: Option<String>,
    log_format: Option<LogFormatArg>,
}

async fn read_file(path: &str) -> Result<ServeFile, CliError> {
    let bytes = read_input(path).await?;
    serde_json::from_slice(&bytes).map_err(|error| CliError::Usage(format!("{path}: {error}")))
}

/// What holds: a flag, else the environment (which clap has read into the flags), else the file,
/// else the default.
fn settle(args: ServeArgs, file: ServeFile) -> Result<NodeConfig, CliError> {
    let data = args.data.or(file.data).ok_or_else(|| {
        CliError::Usage("a node needs a folder for its data: say --data DIR".to_owned())
    })?;
    let listen =
        args.listen.or(file.listen).map_or_else(|| address(NodeConfig::LISTEN_DEFAULT), Ok)?;
    let peer_listen = args
        .peer_listen
        .or(file.peer_listen)
        .map_or_else(|| address(NodeConfig::PEER_LISTEN_DEFAULT), Ok)?;
    let mut config = NodeConfig::new(data, listen, peer_listen);
    config.advertise_api = args.advertise_api.or(file.advertise_api);
    config.advertise_peer = args.advertise_peer.or(file.advertise_peer);
    let said_how = args.bootstrap || !args.join.is_empty();
    config.start = if said_how {
        start_mode(args.bootstrap, args.join)?
    } else {
        start_mode(file.bootstrap, file.join)?
    };
    set(&mut config.heartbeat, "heartbeat", args.heartbeat, file.heartbeat.as_deref())?;
    set(&mut config.election_min, "election_min", args.election_min, file.election_min.as_deref())?;
    set(&mut config.election_max, "election_max", args.election_max, file.election_max.as_deref())?;
    let grace = file.shutdown_grace.as_deref();
    set(&mut config.shutdown_grace, "shutdown_grace", args.shutdown_grace, grace)?;
    if let Some(count) = args.snapshot_every.or(file.snapshot_every) {
        config.snapshot_every = count.max(1);
    }
    check_timing(&config)?;
    Ok(config)
}

fn address(text: &str) -> Result<SocketAddr, CliError> {
    text.parse().map_err(|_| CliError::Usage(format!("{text:?} is not an address and a port")))
}

fn start_mode(bootstrap: bool, join: Vec<String>) -> Result<StartMode, CliError> {
    match (bootstrap, join.is_empty()) {
        (true, true) => Ok(StartMode::Bootstrap),
        (false, false) => Ok(StartMode::Join(join)),
        (false, true) => Ok(StartMode::Restart),
        (true, false) => Err(CliError::Usage("bootstrap and join exclude each other".to_owned())),
    }
}

fn set(
    slot: &mut Duration,
    key: &str,
    flag: Option<Span>,
    file: Option<&str>,
) -> Result<(), CliError> {
    let from_file = match file {
        Some(text) => {
            let span = text.parse::<Span>();
            Some(span.map_err(|error| CliError::Usage(format!("{key}: {error}")))?)
        }
        None => None,
    };
    if let Some(span) = flag.or(from_file) {
        *slot = span.to_std();
    }
    Ok(())
}

/// A follower that stands for election before it could have heard of its leader never settles.
fn check_timing(config: &NodeConfig) -> Result<(), CliError> {
    let NodeConfig { heartbeat, election_min, election_max, .. } = config;
    if heartbeat.is_zero() || *election_min < *heartbeat * 2 || election_max <= election_min {
        return Err(CliError::Usage(format!(
            "the election times must be at least twice the heartbeat, and the larger above the \
             smaller; these are {heartbeat:?}, {election_min:?}, {election_max:?}"
        )));
    }
    Ok(())
}

/// Ends when standard input does, which the parent holds open for as long as it lives.
async fn parent_gone(is_asked: bool) {
    if !is_asked {
        return std::future::pending().await;
    }
    let mut stdin = tokio::io::stdin();
    let mut buffer = [0; 64];
    while let Ok(len) = stdin.read(&mut buffer).await {
        if len == 0 {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::args::{Cli, Command};

    fn settled(flags: &[&str], file: &str) -> Result<NodeConfig, CliError> {
        let words = ["horolog", "serve"].iter().chain(flags);
        let Command::Serve(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("not serve");
        };
        let file = serde_json::from_str(file).map_err(|e| CliError::Usage(e.to_string()))?;
        settle(*args, file)
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let file = r#"{"data": "/f", "listen": "127.0.0.1:1", "heartbeat": "50ms",
            "join": ["a:1"]}"#;
        let config = settled(&["--data", "/d", "--bootstrap"], file).unwrap();
        assert_eq!(config.data, PathBuf::from("/d"));
        assert_eq!(config.listen.to_string(), "127.0.0.1:1");
        assert_eq!(config.peer_listen.to_string(), NodeConfig::PEER_LISTEN_DEFAULT);
        assert_eq!(config.heartbeat, Duration::from_millis(50));
        assert_eq!(config.start, StartMode::Bootstrap);
        let config = settled(&[], file).unwrap();
        assert_eq!(config.start, StartMode::Join(vec!["a:1".to_owned()]));
    }

    #[test]
    fn settings_that_cannot_be_are_refused_with_their_reason() {
        let table: &[(&[&str], &str, &str)] = &[
            (&[], "{}", "--data"),
            (&["--data", "/d"], "{\"polo\": 1}", "polo"),
            (&["--data", "/d"], "{\"heartbeat\": \"soon\"}", "heartbeat"),
            (&["--data", "/d"], "{\"bootstrap\": true, \"join\": [\"a:1\"]}", "exclude"),
            (&["--data", "/d", "--heartbeat", "1s"], "{}", "twice the heartbeat"),
        ];
        for (flags, file, part) in table {
            let error = settled(flags, file).unwrap_err();
            assert_eq!(error.code(), crate::cli::error::USAGE);
            assert!(error.to_string().contains(part), "{flags:?} {file}: {error}");
        }
    }
}
