//! Ids of things in the target.

/// A thread of the target, numbered in creation order and never reused within a run.
/// The main thread is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
pub struct ThreadId(pub u32);

/// An address in the target's memory. It is meaningless in this process, so it is not a pointer
/// and cannot be dereferenced.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
pub struct Addr(pub u64);

/// A code address in the target: the return address of a callback or of an interposed call, so it
/// points just past the instruction in question.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
pub struct Pc(pub u64);

/// A code address that is the same in every run of a build: a hash of the module's file name in
/// the upper 16 bits, and the offset from the module's load address below.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "std", derive(serde::Serialize, serde::Deserialize))]
pub struct Site(pub u64);

impl Site {
    /// An unknown site.
    pub const UNKNOWN: Self = Self(0);

    /// The site of `offset` in the module whose path ends in the file name of `path`.
    #[must_use]
    pub fn new(path: &[u8], offset: u64) -> Self {
        let start = path.iter().rposition(|&b| b == b'/').map_or(0, |slash| slash + 1);
        // FNV-1a, folded to 16 bits: there are few modules, and a collision only weakens a check.
        let hash = path[start..].iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let folded = (hash ^ (hash >> 16) ^ (hash >> 32) ^ (hash >> 48)) & 0xffff;
        Self(folded << 48 | offset & ((1 << 48) - 1))
    }

    /// The offset from the module's load address.
    #[must_use]
    pub fn offset(self) -> u64 {
        self.0 & ((1 << 48) - 1)
    }
}

macro_rules! hex {
    ($($name:ident)*) => {$(
        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{}({:#x})", stringify!($name), self.0)
            }
        }
        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{:#x}", self.0)
            }
        }
    )*};
}
hex! { Addr Pc Site }
