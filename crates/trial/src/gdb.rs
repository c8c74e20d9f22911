//! A target under gdb.
//!
//! gdb starts the target itself, with the same arguments, environment and plan; this process
//! only keeps the control block. Breakpoints take real time but no turns, so the order of
//! threads is that of the plan all the same, for however long a thread is looked at.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::Command;

use raddle_trace::control::{Deliver, NO_WATCHDOG};

use crate::interrupt;
use crate::launch::{Launch, LaunchError, PRELOAD, environment};
use crate::plan::Plan;
use crate::shm::Block;

/// Runs gdb on a target, and waits until the user is done.
pub fn debug(launch: &Launch, plan: &Plan) -> Result<(), LaunchError> {
    let block = Block::new(plan.layout()).map_err(LaunchError::Block)?;
    plan.store(Deliver::Nothing, NO_WATCHDOG, &block);
    let start = |source: io::Error| LaunchError::Start { program: "gdb".into(), source };
    // gdb passes the full path on as the program's name.
    let program = launch.program.canonicalize().map_err(start)?;
    let mut arguments = launch.arguments.clone();
    arguments[0] = program.clone().into();
    let launch = Launch { program, arguments, ..launch.clone() };
    let mut command = Command::new("gdb");
    command.env_clear().args(["-q", "-ex", "set disable-randomization on"]);
    command.args(["-ex", "set startup-with-shell off"]);
    // gdb sets these two for itself.
    command.args(["-ex", "unset environment LINES", "-ex", "unset environment COLUMNS"]);
    for (name, value) in environment(&launch, &block) {
        // What gdb finds in its own environment it hands on; but the runtime is not for gdb.
        if [PRELOAD, "LINES", "COLUMNS"].iter().any(|special| name == OsStr::new(special)) {
            let mut set = OsString::from("set environment ");
            set.push(name);
            set.push(" = ");
            set.push(value);
            command.arg("-ex").arg(set);
        } else {
            command.env(name, value);
        }
    }
    if let Some(directory) = &launch.directory {
        command.current_dir(directory);
    }
    command.arg("--args").arg(&launch.program).args(&launch.arguments[1..]);
    // An interrupt from the keyboard is for gdb, which without this would never see it.
    let held = interrupt::held();
    held.thread_unblock().map_err(|error| start(error.into()))?;
    let gdb = command.spawn();
    held.thread_block().map_err(|error| start(error.into()))?;
    gdb.and_then(|mut gdb| gdb.wait()).map_err(start)?;
    Ok(())
}
