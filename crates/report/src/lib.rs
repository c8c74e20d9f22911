//! What a run did, in words.
//!
//! A trace holds addresses. [`symbols`] finds names for them in the files that the target
//! was made of, [`code`] hands out their machine code, and [`events`] tells each event in one
//! line. Nothing here touches the target: all names are looked up offline, from a module's
//! build-id and an offset in it.

pub mod symbols;

pub mod code;
mod exceptions;

pub mod events;
