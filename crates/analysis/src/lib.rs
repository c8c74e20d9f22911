//! From traces to findings and schedules.
//!
//! Pure: no I/O, no symbol names.

pub mod stop;
pub mod vector_clock;
pub mod order;
pub mod locks;
pub mod lock_words;
pub mod witness;
pub mod accessed;
pub mod sharing;
pub mod generations;
pub mod classes;
mod recent;
pub mod skeleton;
pub mod accesses;
pub mod nearby;
mod starts;
pub mod model;
pub mod scan;
pub mod reading;
pub mod pattern;
pub mod anomaly;
pub mod deadlock;
pub mod predict;
pub mod weave;
pub mod observed;
pub mod localize;
#[cfg(test)]
mod notation;
