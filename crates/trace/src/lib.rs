//! What crosses the boundary between the target and raddle.
//!
//! Without the `std` feature this crate contains what the runtime inside the target shares with
//! the parent: ids, the 16-byte [`record`]s that leave the target, and the [`control`] block
//! through which the two communicate. With it come the values that the parent works with:
//! [`event`]s, [`schedule`]s, [`clip`]s, and the trace [`mod@file`].
#![cfg_attr(not(feature = "std"), no_std)]

pub mod id;
pub mod record;
pub mod misuse;
pub mod allow;
pub mod remark;
pub mod expiry;
pub mod control;
pub mod history;
pub mod own;
#[cfg(feature = "std")]
pub mod failure;
#[cfg(feature = "std")]
pub mod event;
#[cfg(feature = "std")]
pub mod merge;
#[cfg(feature = "std")]
pub mod schedule;
#[cfg(feature = "std")]
pub mod run;
#[cfg(feature = "std")]
pub mod checksum;
#[cfg(feature = "std")]
pub mod codec;
#[cfg(feature = "std")]
#[allow(unsafe_code, reason = "the compiler cannot check that nobody changes a mapped file")]
mod mapped;
#[cfg(feature = "std")]
pub mod file;
#[cfg(feature = "std")]
pub mod location;
#[cfg(feature = "std")]
pub mod std_text;
#[cfg(feature = "std")]
pub mod step_version;
#[cfg(feature = "std")]
pub mod clip;
