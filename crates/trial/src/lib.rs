//! Trials: a target, executed under a plan, with an outcome.
//!
//! [`execute`] starts a [`Launch`] by a [`Plan`] and gives back an [`Execution`]: how the
//! target ended, and as much of what it did as was wanted.

#[allow(unsafe_code, reason = "memory that is shared with the target")]
pub mod shm;
#[allow(unsafe_code, reason = "wait4 has no safe wrapper")]
pub mod wait;
pub mod binary;
pub mod capture;
pub mod compile;
pub mod draw;
pub mod execute;
pub mod gdb;
pub mod interrupt;
pub mod launch;
pub mod outcome;
pub mod plan;
pub mod recorder;
pub mod unpack;
pub mod verdict;

pub use capture::Captured;
pub use execute::{Delivery, Execution, Sink, execute, processors};
pub use launch::{Input, Launch, LaunchError, Output, fix_addresses};
pub use outcome::{End, Outcome};
pub use plan::{Order, Plan};
pub use recorder::Recorder;
pub use wait::Status;
