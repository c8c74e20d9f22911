//! A module's machine code, as control flow analyses need it.

use std::ops::Range;

/// A module's code, at its addresses in the target.
pub trait Image {
    /// All functions and parts of functions.
    fn symbols(&self) -> &[Symbol];

    /// Bytes of code or constants; none if some are not in the file, or can change.
    fn bytes(&self, range: Range<u64>) -> Option<&[u8]>;

    /// What is known of a callee.
    fn callee(&self, target: Target) -> Callee;

    /// Where exceptions land that leave the calls of a function or part of one. None if unknown.
    fn landing_pads(&self, code: &Range<u64>) -> Option<Vec<LandingPad>>;
}

/// A function, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its first byte.
    pub start: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Whether it is an unlikely part of a function elsewhere.
    pub is_part: bool,
}

/// The target of a call, as far as the instruction says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// This address.
    Address(u64),
    /// The address stored in the 8 bytes at this address, which the loader fills in.
    Slot(u64),
    /// Unknown from the code.
    Unknown,
}

/// What is known of a callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// A callback of the instrumentation that is always recorded, with its return address.
    Callback,
    /// Does not return.
    NoReturn,
    /// Returns again after it has returned, as `setjmp` does.
    ReturnsTwice,
    /// Anything else.
    Other,
}

/// Where exceptions land.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandingPad {
    /// The calls that end in this range.
    pub calls: Range<u64>,
    /// Where they continue.
    pub at: u64,
}
