//! Traces in, findings and schedules out.
//!
//! Pure: no input or output, and no names of symbols.

pub mod order;
pub mod locks;
pub mod lock_words;
pub mod sharing;
pub mod witness;
pub mod kinds;
mod recent;
pub mod skeleton;
pub mod accesses;
pub mod nearby;
pub mod model;
pub mod scan;
pub mod pattern;
pub mod anomaly;
pub mod deadlock;
pub mod predict;
pub mod weave;
pub mod observed;
pub mod localize;
pub mod code;
#[cfg(test)]
mod notation;
