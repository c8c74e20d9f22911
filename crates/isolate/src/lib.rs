//! From a failure to the write that first went wrong.
//!
//! Execution suppression, after Jeffrey, Wang, Tian and Gupta (Software: Practice and
//! Experience 2011).
//!
//! `chain` is the loop of the paper's Figure 1. What did the failure use (`failure`,
//! `origin`)? Who defined that last? Is a race, an atomicity violation or an order violation
//! involved (`check`, Figures 2 and 3)? If not, the definition is suppressed with everything
//! that depends on it (`follow`, `flow`, `shadow`), and the next failure is examined.
//!
//! **What a failure used.** The thread that dies is stopped while its registers and memory
//! still exist. From the operands of the instruction, or from the condition that led to a call
//! that never returns (an assertion, a panic, malloc's complaint: the outermost activation
//! whose callee cannot reach a `ret` decided), a walk back over the function's graph leads to
//! the loads. Addresses that the end of the execution does not reveal are taken from the trace,
//! or asked for in one more execution with a breakpoint on the load.
//!
//! **Suppression.** A branch on something suppressed continues at its immediate post-dominator,
//! and what the skipped paths would have written is marked. Library calls with a suppressed
//! argument are not made. Callbacks into the runtime are made, with another address, since
//! schedules count them; nothing inside the runtime is ever suppressed. A suppressed return
//! address or frame pointer gets its old value back, so returns work.
//!
//! **Definitions.** A write that changes nothing cannot be part of a violation, and needs no
//! execution to show that. What a library call writes in several instructions is one
//! definition.
//!
//! **Limits.** Debug registers do not see what the kernel writes for the program (`read`). Only a
//! few words can be watched for definitions at once (`chain::definition`). A value computed by
//! anything but moves and simple arithmetic has no known address. Which arguments an unknown
//! library function uses is guessed from which registers were set for it. A hang of a program
//! that is not under control has no location.

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
mod location_history;
mod tracee;

pub use chain::{AccessAt, Cause, Executions, IsolateError, Isolation, Link, Target, isolate};
pub use check::CauseKind;
pub use failure::{Failure, Use};
pub use origin::Location;
