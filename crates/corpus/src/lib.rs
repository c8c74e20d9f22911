//! Programs to test and measure raddle with, and what such tests share.
//!
//! A [`Source`] says in its first lines what raddle has to find out about it. [`runner`] makes one
//! test of each program, [`Place`] runs raddle in a temporary directory, [`Exceptions`] lists the
//! programs that a check does not hold for yet, and [`tool()`] finds optional tools.
//!
//! Only tests and benches use this crate.

pub mod exceptions;
pub mod guilty;
pub mod place;
pub mod runner;
pub mod source;
pub mod tool;

pub use exceptions::Exceptions;
pub use place::{Place, Ran};
pub use source::{Source, path, sources};
pub use tool::tool;
