//! From a failure to the write that first went wrong.
//!
//! Execution suppression, after Jeffrey, Wang, Tian and Gupta (Software: Practice and
//! Experience 2011).

mod calls;
mod chain;
mod check;
mod code;
mod failure;
mod flow;
mod follow;
mod frame;
mod image;
mod origin;
#[cfg(test)]
mod reference;
mod shadow;
mod story;
mod tracee;

pub use chain::{AccessAt, Cause, Executions, IsolateError, Isolation, Link, Target, isolate};
pub use check::CauseKind;
pub use failure::{Failure, Use};
pub use origin::Location;
