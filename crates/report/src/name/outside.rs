//! What is not controlled, in words.

use raddle_symbols::name::Namer;
use raddle_trace::control::Outside;
use raddle_trace::id::Pc;
use raddle_trial::outcome::{Doubts, Uncontrolled};

/// Whether it is a child process.
pub(super) fn is_child(what: Outside) -> bool {
    match what {
        Outside::Fork | Outside::Vfork | Outside::Spawn | Outside::Popen | Outside::System => true,
        Outside::Input | Outside::Call | Outside::Thread | Outside::Signal => false,
    }
}

/// What it is, and where the program started it or waited for it.
pub(super) fn words(namer: &Namer, uncontrolled: Uncontrolled) -> String {
    let Uncontrolled { what, pc } = uncontrolled;
    let what = match what {
        Outside::Fork => "a child process, started by fork",
        Outside::Vfork => "a child process, started by vfork",
        Outside::Spawn => "a child process, started by posix_spawn",
        Outside::Popen => "a child process, started by popen",
        Outside::System => "a child process, started by system",
        Outside::Input => "input from another process, awaited",
        Outside::Call => "a call that blocks in the kernel,",
        Outside::Thread => return "a thread that the C library started".to_owned(),
        Outside::Signal => return "a signal from another process".to_owned(),
    };
    match pc {
        Pc(0) => what.trim_end_matches(',').to_owned(),
        pc => format!("{what} at {}", namer.site(pc)),
    }
}

/// A line about what runs that differ depended on; none if that is not known.
pub(super) fn line(namer: &Namer, doubts: Doubts) -> Option<String> {
    let decided = doubts.outside.map(|outside| words(namer, outside));
    let beside = || doubts.child.map(|child| format!("{}, ran beside it", words(namer, child)));
    decided.or_else(beside).map(|what| format!("  not controlled: {what}\n"))
}
