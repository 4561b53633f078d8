//! The program: hands the command line over, and its exit code back.

fn main() -> std::process::ExitCode {
    horolog::cli::run(std::env::args_os())
}
