//! Runs the `command` executor: a program in a process group of its own.
//!
//! - No shell reads the arguments.
//! - Standard output and error share one pipe, so that their order is kept; only the end is held
//!   in memory.
//! - The run ends when the program ends. What is left of its process group then is killed: it
//!   would run without a lease. A process that is meant to stay leaves the group (`setsid`).
//! - Told to stop, the whole group gets `SIGTERM`, and `SIGKILL` after a grace; the output says
//!   which one it took.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use crate::wire::job::{CommandExecutor, Executor};
use crate::worker::environment::variables;
use crate::worker::handler::{Ending, Failure, Handler, Report, Run, Stop, StopReason};
use crate::worker::output_tail::OutputTail;
use crate::worker::process_group::{EndedBy, ProcessGroup};
use crate::worker::user::user_to_become;

/// How much is read from the pipe at once.
const READ_BYTES: usize = 64 * 1_024;
/// How long the output may stay open after the program has ended, held by processes that left its
/// group.
const OUTPUT_LINGER: Duration = Duration::from_millis(500);

/// How long a killed program may take to be gone; one that hangs inside the system must not hang
/// the worker.
const REAP_MAX: Duration = Duration::from_secs(5);

/// Starts programs.
#[derive(Clone, Copy, Debug)]
pub struct CommandHandler {
    /// Between `SIGTERM` and `SIGKILL`.
    pub kill_grace: Duration,
}

impl Handler for CommandHandler {
    fn run(&self, run: Arc<Run>, stop: Stop) -> BoxFuture<'static, Report> {
        let kill_grace = self.kill_grace;
        Box::pin(async move {
            let Executor::Command(spec) = &run.grant.executor else {
                return Report::failed(Failure::permanent("executor", "this is not a command"));
            };
            match start(spec, &run).await {
                Ok(started) => started.attend(stop, kill_grace).await,
                Err(failure) => Report::failed(failure),
            }
        })
    }
}

/// A program under way.
struct Started {
    child: Child,
    group: ProcessGroup,
    output: pipe::Receiver,
    stdin: Option<String>,
}

async fn start(spec: &CommandExecutor, run: &Run) -> Result<Started, Failure> {
    let Some((program, arguments)) = spec.argv.split_first() else {
        return Err(Failure::permanent("start", "the command names no program"));
    };
    let (reader, writer) = io::pipe().map_err(|error| no_resource(&error))?;
    let also_writer = writer.try_clone().map_err(|error| no_resource(&error))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(if spec.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::from(writer))
        .stderr(Stdio::from(also_writer))
        .process_group(0)
        .kill_on_drop(true);
    if let Some(name) = &spec.user {
        become_user(&mut command, name).await?;
    }
    command.envs(&spec.env).envs(variables(run));
    if let Some(folder) = &spec.folder {
        command.current_dir(folder);
    }
    let child = command.spawn().map_err(|error| not_started(spec, program, &error))?;
    // Our copies of the pipe's end must go, or the output would never end.
    drop(command);
    let group = ProcessGroup::led_by(child.id());
    let output = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))
        .map_err(|error| no_resource(&error))?;
    Ok(Started { child, group, output, stdin: spec.stdin.clone() })
}

async fn become_user(command: &mut Command, name: &str) -> Result<(), Failure> {
    let user = user_to_become(name).await;
    let user = user.map_err(|error| Failure::permanent("user", error.to_string()))?;
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid);
        command.env("USER", name).env("LOGNAME", name).env("HOME", &user.home);
    }
    Ok(())
}

fn no_resource(error: &io::Error) -> Failure {
    Failure::retryable("start", format!("the worker has no resources to start it: {error}"))
}

fn not_started(spec: &CommandExecutor, program: &str, error: &io::Error) -> Failure {
    let folder = spec.folder.as_deref();
    let place = folder.map(|folder| format!(" in the folder {folder:?}")).unwrap_or_default();
    let message = format!("cannot start {program:?}{place}: {error}");
    let permanent = matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput
    );
    if permanent {
        Failure::permanent("start", message)
    } else {
        Failure::retryable("start", message)
    }
}

impl Started {
    async fn attend(mut self, mut stop: Stop, kill_grace: Duration) -> Report {
        let mut tail = OutputTail::new();
        let feeding = feed(self.child.stdin.take(), self.stdin.take());
        let mut feeding = std::pin::pin!(feeding);
        let mut fed = false;
        let mut output_open = true;
        let mut buffer = vec![0; READ_BYTES];
        let status = loop {
            tokio::select! {
                biased;
                reason = stop.stopped() => {
                    return self.stop(reason, kill_grace, tail, &mut buffer).await;
                }
                // Before the output: whoever else prints without end must not hide that the
                // program has ended.
                status = self.child.wait() => break status,
                read = self.output.read(&mut buffer), if output_open => {
                    match read {
                        Ok(len) if len > 0 => tail.push(&buffer[..len]),
                        Ok(_) | Err(_) => output_open = false,
                    }
                }
                () = &mut feeding, if !fed => fed = true,
            }
        };
        self.group.kill();
        if output_open {
            read_rest(&mut self.output, &mut tail, &mut buffer).await;
        }
        finished(status, &tail)
    }

    /// Ends the group, and goes on reading meanwhile: a program that blocks on a full pipe could
    /// not end.
    async fn stop(
        mut self,
        reason: StopReason,
        kill_grace: Duration,
        mut tail: OutputTail,
        buffer: &mut [u8],
    ) -> Report {
        let ended_by = {
            let reaping = tokio::time::timeout(kill_grace + REAP_MAX, self.child.wait());
            let ending = self.group.terminate(kill_grace);
            let ending = async { tokio::join!(ending, reaping).0 };
            let reading = async {
                read_all(&mut self.output, &mut tail, buffer).await;
                std::future::pending::<EndedBy>().await
            };
            tokio::select! {
                ended_by = ending => ended_by,
                never = reading => never,
            }
        };
        read_rest(&mut self.output, &mut tail, buffer).await;
        let how = match ended_by {
            EndedBy::Itself => "it had ended by itself".to_owned(),
            EndedBy::Term => "SIGTERM ended it".to_owned(),
            EndedBy::Kill => format!("SIGKILL ended it, {kill_grace:?} after SIGTERM"),
        };
        let why = match reason {
            StopReason::Cancelled => "cancelled",
            StopReason::TimedOut => "timed out",
            StopReason::LeaseLost => "lease lost",
            StopReason::Draining => "worker drained",
        };
        tail.push_line(&format!("[{why}: {how}]"));
        Report { ending: Ending::Stopped, output: Some(tail.finish()), exit_code: None }
    }
}

/// Writes the input. A program that does not read it to its end is no failure.
async fn feed(stdin: Option<tokio::process::ChildStdin>, text: Option<String>) {
    if let (Some(mut stdin), Some(text)) = (stdin, text) {
        let _ = stdin.write_all(text.as_bytes()).await;
    }
}

async fn read_all(output: &mut pipe::Receiver, tail: &mut OutputTail, buffer: &mut [u8]) {
    while let Ok(len) = output.read(buffer).await {
        if len == 0 {
            break;
        }
        tail.push(&buffer[..len]);
    }
}

/// Reads what is left. Whoever holds the pipe open for longer has left the group, and its output
/// is not ours.
async fn read_rest(output: &mut pipe::Receiver, tail: &mut OutputTail, buffer: &mut [u8]) {
    let _ = tokio::time::timeout(OUTPUT_LINGER, read_all(output, tail, buffer)).await;
}

fn finished(status: io::Result<ExitStatus>, tail: &OutputTail) -> Report {
    let output = Some(tail.finish());
    let status = match status {
        Ok(status) => status,
        Err(error) => {
            let message = format!("cannot learn how the program ended: {error}");
            let failure = Failure::retryable("wait", message);
            return Report { output, ..Report::failed(failure) };
        }
    };
    let exit_code = status.code();
    let ending = match (exit_code, status.signal()) {
        (Some(0), _) => Ending::Succeeded(None),
        (Some(code), _) => {
            Ending::Failed(Failure::retryable("exit", format!("it ended with exit code {code}")))
        }
        (None, signal) => {
            let number = signal.unwrap_or_default();
            let message = format!("signal {number} ended it, which was not sent by the worker");
            Ending::Failed(Failure::retryable("signal", message))
        }
    };
    Report { ending, output, exit_code }
}

#[cfg(test)]
mod tests;
