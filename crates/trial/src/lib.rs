//! Trials: a target, executed under a plan, with an outcome.
//!
//! [`Trial::run`] starts a [`Launch`] by a [`Plan`]. It returns an [`Execution`], which is how the
//! target ended and as much of what it did as was wanted, with the [`verdict::Verdict`] on it.
//! [`compile`] makes a target from a source file, and [`unpack`] puts the runtime
//! library where the loader finds it.

pub mod plan;
pub mod launch;
pub mod execute;
pub mod draw;
pub mod histories;
pub mod recorder;
pub mod outcome;
pub mod lateness;
pub mod allowed;
pub mod remarked;
mod stack;
pub mod last_words;
pub mod oracle;
pub mod verdict;
pub mod trial;
pub mod target;
pub mod clip;
pub mod interrupt;
pub mod family;
pub mod gdb;
pub mod capture;
pub mod compile;
pub mod unpack;
#[allow(unsafe_code, reason = "memory that is shared with the target")]
pub mod shm;
#[allow(unsafe_code, reason = "wait4 and code between fork and exec have no safe wrappers")]
pub mod wait;

pub use capture::Captured;
pub use execute::{
    Delivery, Execution, Sink, Tracer, execute, execute_plain, execute_traced, processors,
};
pub use launch::{Input, Launch, LaunchError, Output, fix_addresses};
pub use outcome::{End, Outcome};
pub use plan::{Order, Plan};
pub use recorder::Recorder;
pub use trial::{Trial, TrialError};
pub use wait::Status;
