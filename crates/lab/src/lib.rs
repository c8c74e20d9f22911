//! Experiments: many executions of a target, and what they show.
//!
//! ```text
//! budget ← executor ← recorded runs ← force ← samples ← compare ← minimize ← hunt, localize
//! ```
//! Each looks only to its left. Ids come in and ids go out: nothing here knows names, reads
//! arguments or prints. Which code is the program's own is a predicate that is passed in; what is
//! going on is reported to a [`progress::Sink`].

pub mod error;
pub mod progress;
pub mod remarks;
pub mod budget;
pub mod executor;
pub mod recorded;
pub mod difference;
pub mod signature;
pub mod access;
pub mod anomalies;
pub mod force;
pub mod sample;
pub mod compare;
pub mod minimize;
pub mod hunt;
pub mod localize;
