//! raddle: finds the thread order that breaks a program, replays it, and explains the failure.

mod exit;
mod args;
mod guard;
mod say;
mod runtime;
mod allow;
mod target;
mod context;
mod progress;
mod clip;
mod run;
mod record;
mod replay;
mod isolate;
mod hunt;
mod predict;
mod localize;
mod minimize;
mod trace;
mod cc;
mod doctor;

use std::process::ExitCode;

use anyhow::Result;
use args::Command;
use cc::Driver;
use exit::Exit;

fn main() -> ExitCode {
    match args::parse().and_then(|args| dispatch(args.command)) {
        Ok(exit) => exit.leave(),
        Err(error) if is_broken_pipe(&error) => Exit::Clean.leave(),
        Err(error) => {
            eprintln!("raddle: {}", sentence(&error));
            Exit::Misuse.leave()
        }
    }
}

fn dispatch(command: Command) -> Result<Exit> {
    match command {
        Command::Hunt(args) => hunt::hunt(args),
        Command::Run(args) => run::run(args),
        Command::Record(args) => record::record(args),
        Command::Predict(args) => predict::predict(&args),
        Command::Localize(args) => localize::localize(args),
        Command::Minimize(args) => minimize::minimize(&args),
        Command::Isolate(args) => isolate::isolate(&args),
        Command::Trace(command) => trace::trace(command),
        Command::Replay(args) => replay::replay(args),
        Command::Cc(args) => cc::cc(Driver::C, args),
        Command::Cxx(args) => cc::cc(Driver::Cxx, args),
        Command::Doctor(args) => doctor::doctor(args),
    }
}

/// An error with its causes. Many messages already include their cause or the file in question.
fn sentence(error: &anyhow::Error) -> String {
    let mut told: Vec<String> = Vec::new();
    for cause in error.chain().map(ToString::to_string) {
        told.retain(|before| !cause.contains(before));
        if !told.iter().any(|before| before.contains(&cause)) {
            told.push(cause);
        }
    }
    told.join(": ")
}

/// Whether the reader of our output closed the pipe.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::sentence;

    #[test]
    fn nothing_is_said_twice() {
        let cause = anyhow!("no room").context("cannot write file: no room").context("file");
        assert_eq!(sentence(&cause), "cannot write file: no room");
        assert_eq!(sentence(&anyhow!("no room").context("file")), "file: no room");
    }
}
