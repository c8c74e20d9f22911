//! `raddle doctor`: is this machine, is this program fit for raddle?

use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;
use raddle_code::program::{self, Soname};
use raddle_trial::shm::Block;

use crate::args::DoctorArgs;
use crate::exit::Exit;
use crate::runtime::RUNTIME;

/// What was found about one thing.
struct Finding {
    subject: String,
    state: State,
    words: String,
}

enum State {
    /// As it should be.
    Good,
    /// Something will not work, but not all.
    Lacking,
    /// Nothing will work.
    Bad,
}

pub(crate) fn doctor(args: DoctorArgs) -> Result<Exit> {
    let mut findings = vec![addresses(), control_block(), library()];
    findings.extend(TOOLS.iter().map(|tool| tool.look()));
    findings.extend(args.program.as_deref().map(program));
    let mut out = io::stdout().lock();
    for Finding { subject, state, words } in &findings {
        let mark = match state {
            State::Good => "good",
            State::Lacking => "lacking",
            State::Bad => "bad",
        };
        writeln!(out, "{mark:<8} {subject}: {words}")?;
    }
    let is_fit = !findings.iter().any(|finding| matches!(finding.state, State::Bad));
    Ok(if is_fit { Exit::Clean } else { Exit::Found })
}

fn addresses() -> Finding {
    let (state, words) = match raddle_trial::fix_addresses() {
        Ok(()) => (State::Good, "can be turned off".to_owned()),
        Err(error) => (
            State::Lacking,
            format!(
                "cannot be turned off ({error}), so programs that depend on addresses may run differently each time; in a container, allow the system call personality"
            ),
        ),
    };
    Finding { subject: "address randomization".into(), state, words }
}

fn control_block() -> Finding {
    let layout = raddle_trace::control::Layout { n_follow: 0, n_lanes: 1 };
    // The target opens the block by this path.
    let open = |block: Block| {
        let path = format!("/proc/{}/fd/{}", std::process::id(), block.descriptor());
        std::fs::File::options().read(true).write(true).open(path).map(drop)
    };
    judged("shared memory", Block::new(layout).and_then(open), "can be shared with a target")
}

fn library() -> Finding {
    let loaded =
        RUNTIME.file(Soname::default()).map_err(|error| error.to_string()).and_then(|path| {
            let output = Command::new("/bin/true")
                .env("LD_PRELOAD", &path)
                .output()
                .map_err(|error| error.to_string())?;
            let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            if output.status.success() && complaint.is_empty() { Ok(path) } else { Err(complaint) }
        });
    let words = loaded.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    judged("runtime library", loaded, &words)
}

fn judged<T>(subject: &str, result: Result<T, impl Display>, words: &str) -> Finding {
    let (state, words) = match result {
        Ok(_) => (State::Good, words.to_owned()),
        Err(error) => (State::Bad, error.to_string()),
    };
    Finding { subject: subject.into(), state, words }
}

/// A program that raddle can make use of.
struct Tool {
    name: &'static str,
    use_for: &'static str,
}

const TOOLS: [Tool; 5] = [
    Tool { name: "gcc", use_for: "compiling .c files" },
    Tool { name: "g++", use_for: "compiling .cc and .cpp files" },
    Tool { name: "clang", use_for: "raddle cc with clang" },
    Tool { name: "rustc", use_for: "compiling .rs files" },
    Tool { name: "gdb", use_for: "replay --gdb" },
];

impl Tool {
    fn look(&self) -> Finding {
        let output = Command::new(self.name).arg("--version").stdin(Stdio::null()).output();
        let (state, words) = match output {
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stdout);
                (State::Good, text.lines().next().unwrap_or("there").to_owned())
            }
            Err(error) => (State::Lacking, format!("{error}; needed for {}", self.use_for)),
        };
        Finding { subject: self.name.into(), state, words }
    }
}

fn program(name: &Path) -> Finding {
    let result = program::check(name);
    let words = match &result {
        Ok(program) if program.is_script => {
            "a script; raddle controls the instrumented program that it starts".to_owned()
        }
        Ok(program) if program.build_id.is_empty() => {
            "instrumented; it has no build-id, so raddle cannot tell whether it was rebuilt after a clip was made; link it with -Wl,--build-id"
                .to_owned()
        }
        Ok(program) => format!("instrumented, build-id {}", program.build_id),
        Err(_) => String::new(),
    };
    judged(&name.display().to_string(), result, &words)
}
