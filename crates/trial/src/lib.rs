//! Trials: a target, executed under a plan, with an outcome.
//!
//! [`execute`] starts a [`Launch`] by a [`Plan`] and gives back an [`Execution`]: how the
//! target ended, and as much of what it did as was wanted; [`verdict::judge`] says whether
//! that is a pass. Before, [`binary`] says whether a program is fit for it, [`compile`] makes
//! one from a source file, and [`unpack`] puts the runtime library where the loader finds it.

pub mod plan;
pub mod launch;
pub mod execute;
pub mod draw;
pub mod histories;
pub mod recorder;
pub mod outcome;
pub mod verdict;
pub mod interrupt;
pub mod gdb;
pub mod capture;
pub mod binary;
pub mod compile;
pub mod unpack;
#[allow(unsafe_code, reason = "memory that is shared with the target")]
pub mod shm;
#[allow(unsafe_code, reason = "wait4 has no safe wrapper")]
pub mod wait;

pub use capture::Captured;
pub use execute::{
    Delivery, Execution, Plain, Sink, Tracer, execute, execute_plain, execute_traced, processors,
};
pub use launch::{Input, Launch, LaunchError, Output, fix_addresses};
pub use outcome::{End, Outcome};
pub use plan::{Order, Plan};
pub use recorder::Recorder;
pub use wait::Status;
