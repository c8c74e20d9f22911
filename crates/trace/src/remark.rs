//! Mistakes that a run shows without failing by them: a note says so, and the run goes on.
//!
//! They are the ones that ThreadSanitizer reports besides races and misuse. A remark never makes a
//! run fail. [`crate::allow`] has the words that turn each of them off.

use crate::record::codes;

codes! {
    /// A mistake that is worth a note.
    Remark:
    /// A signal handler changes `errno`, and the code that it interrupts may be about to read it.
    HandlerErrno = 0,
    /// A signal handler calls a function that is not async-signal-safe: the code that it
    /// interrupts may be inside the same function.
    HandlerUnsafe = 1,
    /// A thread has ended and nobody joined or detached it before the program exited, so libc
    /// could not reuse its stack.
    Leak = 2,
}

impl Remark {
    /// All of them, by number.
    pub const ALL: [Self; 3] = [Self::HandlerErrno, Self::HandlerUnsafe, Self::Leak];

    /// Its word on the command line and in clips.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::HandlerErrno => "handler-errno",
            Self::HandlerUnsafe => "handler-unsafe",
            Self::Leak => "leak",
        }
    }

    /// Its bit in a set of what is allowed, beside those of judgements.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << (FIRST_BIT + self as u32)
    }
}

/// Judgements have the bits below.
pub(crate) const FIRST_BIT: u32 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places_in_the_list() {
        for (number, remark) in (0..).zip(Remark::ALL) {
            assert_eq!(Remark::from_u8(number), Some(remark));
        }
        assert_eq!(Remark::from_u8(Remark::ALL.len() as u8), None);
    }
}
