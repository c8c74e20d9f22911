//! Judgements that a run can do without, and remarks that a user can do without.
//!
//! A run ends where the target does what no correct program does. If that is known and certain, it
//! hides everything that comes after it. So each of these judgements can be *allowed*, everywhere
//! or in one function: then the operation is performed, as far as possible as libc would perform
//! it without raddle, the run goes on, and what was allowed is counted.
//!
//! [`Judgement::Misuse`] is for what no other word is for. Its word allows those of
//! [`Judgement::ForeignUnlock`] and [`Judgement::Destroyed`] too. Operations on a null pointer
//! cannot be allowed: there is nothing to go on with.
//!
//! A [`Remark`](remark::Remark) ends no run. To allow one is not to mention it.

use crate::misuse::{Fault, Misuse, Operation};
use crate::record::codes;
use crate::remark;

codes! {
    /// A judgement that ends a run unless it is allowed.
    Judgement:
    /// Freed memory is used.
    UseAfterFree = 0,
    /// A block is freed again.
    DoubleFree = 1,
    /// A lock is released by a thread that does not hold it.
    ForeignUnlock = 2,
    /// A synchronization object is used after its end, or ends while it is in use.
    Destroyed = 3,
    /// Any other misuse of a synchronization object.
    Misuse = 4,
    /// A thread waits for a lock that it holds itself.
    SelfDeadlock = 5,
}

const _: () = assert!(Judgement::ALL.len() <= remark::FIRST_BIT as usize);

impl Judgement {
    /// All of them, by number.
    pub const ALL: [Self; 6] = [
        Self::UseAfterFree,
        Self::DoubleFree,
        Self::ForeignUnlock,
        Self::Destroyed,
        Self::Misuse,
        Self::SelfDeadlock,
    ];

    /// Its bit in a set of judgements.
    #[must_use]
    pub const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// The set of judgements that its word allows.
    #[must_use]
    pub const fn allowed_bits(self) -> u32 {
        match self {
            Self::Misuse => Self::Misuse.bit() | Self::ForeignUnlock.bit() | Self::Destroyed.bit(),
            Self::UseAfterFree
            | Self::DoubleFree
            | Self::ForeignUnlock
            | Self::Destroyed
            | Self::SelfDeadlock => self.bit(),
        }
    }

    /// The judgement on a misuse; none if it cannot be allowed.
    #[must_use]
    pub const fn on(misuse: Misuse) -> Option<Self> {
        Some(match misuse.fault {
            Fault::Null => return None,
            Fault::Freed | Fault::Destroyed => Self::Destroyed,
            Fault::Uninitialized => Self::Misuse,
            Fault::HeldByOther | Fault::NotHeld if releases(misuse.operation) => {
                Self::ForeignUnlock
            }
            Fault::Held | Fault::Awaited if ends(misuse.operation) => Self::Destroyed,
            Fault::HeldByOther | Fault::NotHeld | Fault::Held | Fault::Awaited => Self::Misuse,
        })
    }

    /// Its word on the command line and in clips.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::UseAfterFree => "use-after-free",
            Self::DoubleFree => "double-free",
            Self::ForeignUnlock => "foreign-unlock",
            Self::Destroyed => "destroyed",
            Self::Misuse => "misuse",
            Self::SelfDeadlock => "self-deadlock",
        }
    }
}

const fn releases(operation: Operation) -> bool {
    matches!(operation, Operation::Unlock | Operation::WaitWith)
}

const fn ends(operation: Operation) -> bool {
    matches!(operation, Operation::Destroy | Operation::Free)
}

#[cfg(feature = "std")]
pub use self::words::{Allowed, AllowedList, Word};

/// What is typed.
#[cfg(feature = "std")]
mod words {
    use std::fmt;
    use std::str::FromStr;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Judgement;
    use crate::remark::Remark;

    /// What can be allowed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Word {
        /// A judgement: runs go on where it would end them.
        Judgement(Judgement),
        /// A remark: it is not made.
        Remark(Remark),
    }

    impl Word {
        /// All of them, as messages list them.
        fn all() -> impl Iterator<Item = Self> {
            let judgements = Judgement::ALL.into_iter().map(Self::Judgement);
            judgements.chain(Remark::ALL.into_iter().map(Self::Remark))
        }

        /// The set of judgements and remarks that it allows.
        #[must_use]
        pub const fn bits(self) -> u32 {
            match self {
                Self::Judgement(judgement) => judgement.allowed_bits(),
                Self::Remark(remark) => remark.bit(),
            }
        }

        /// As it is typed.
        #[must_use]
        pub const fn as_str(self) -> &'static str {
            match self {
                Self::Judgement(judgement) => judgement.word(),
                Self::Remark(remark) => remark.word(),
            }
        }
    }

    /// What is allowed, everywhere or in one function.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Allowed {
        /// The word that was typed.
        pub word: Word,
        /// The name of the function, as raddle prints it.
        pub function: Option<String>,
    }

    impl fmt::Display for Allowed {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.word.as_str())?;
            match &self.function {
                Some(function) => write!(f, "@{function}"),
                None => Ok(()),
            }
        }
    }

    impl FromStr for Allowed {
        type Err = String;

        fn from_str(text: &str) -> Result<Self, String> {
            let (typed, function) = match text.split_once('@') {
                Some((typed, function)) => (typed, Some(function)),
                None => (text, None),
            };
            let Some(word) = Word::all().find(|word| word.as_str() == typed) else {
                let words: Vec<_> = Word::all().map(Word::as_str).collect();
                let (last, others) = words.split_last().expect("there are words");
                return Err(format!("expected {}, or {last}", others.join(", ")));
            };
            if function.is_some_and(str::is_empty) {
                return Err(format!("expected the name of a function after `{typed}@`"));
            }
            Ok(Self { word, function: function.map(ToOwned::to_owned) })
        }
    }

    impl Serialize for Allowed {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.collect_str(self)
        }
    }

    impl<'de> Deserialize<'de> for Allowed {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            let text = String::deserialize(from)?;
            text.parse().map_err(|words| {
                D::Error::custom(format_args!("unknown judgement `{text}`, {words}"))
            })
        }
    }

    /// Several of them, separated by commas.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AllowedList(pub Vec<Allowed>);

    impl FromStr for AllowedList {
        type Err = String;

        fn from_str(text: &str) -> Result<Self, String> {
            parts(text).into_iter().map(str::parse).collect::<Result<_, _>>().map(Self)
        }
    }

    /// The parts between commas; those in a function's name (`max<int, long>`) do not count.
    fn parts(text: &str) -> Vec<&str> {
        let mut n_open = 0_i32;
        let separators = text.split(|c: char| {
            n_open += i32::from("<([{".contains(c)) - i32::from(">)]}".contains(c));
            c == ',' && n_open <= 0
        });
        separators.map(str::trim).collect()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[track_caller]
        fn check(text: &str, expect: &[&str]) {
            let AllowedList(all) = text.parse().expect(text);
            let all: Vec<_> = all.iter().map(ToString::to_string).collect();
            assert_eq!(all, expect);
        }

        #[test]
        fn a_word_may_name_a_function() {
            check("misuse", &["misuse"]);
            check("use-after-free@Queue::push", &["use-after-free@Queue::push"]);
            check("double-free@max<int, long>, misuse", &["double-free@max<int, long>", "misuse"]);
            check("misuse@run::{closure#0},destroyed", &["misuse@run::{closure#0}", "destroyed"]);
            check("leak@main,handler-errno", &["leak@main", "handler-errno"]);
        }

        #[test]
        fn other_words_are_refused() {
            let known = "expected use-after-free, double-free, foreign-unlock, destroyed, misuse, \
                         self-deadlock, handler-errno, handler-unsafe, or leak";
            for wrong in ["", "leaks", "misuse,", "Misuse", "use after free", "use-after-free=f"] {
                assert_eq!(wrong.parse::<AllowedList>(), Err(known.to_owned()), "{wrong}");
            }
            let unnamed = "expected the name of a function after `misuse@`";
            assert_eq!("misuse@".parse::<Allowed>(), Err(unnamed.to_owned()));
        }

        #[test]
        fn words_are_stored_as_they_are_typed() {
            for word in Word::all() {
                let allowed = Allowed { word, function: Some("f".to_owned()) };
                let json = serde_json::to_string(&allowed).expect("JSON");
                assert_eq!(json, format!("\"{}@f\"", word.as_str()));
                assert_eq!(serde_json::from_str::<Allowed>(&json).expect("a word"), allowed);
            }
        }

        #[test]
        fn no_two_words_allow_the_same_alone() {
            let bits: Vec<_> = Word::all().map(Word::bits).collect();
            for (at, bit) in bits.iter().enumerate() {
                assert!(!bits[..at].contains(bit), "{bits:?}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Lock;

    #[track_caller]
    fn check(operation: Operation, fault: Fault, expect: Option<Judgement>) {
        assert_eq!(Judgement::on(Misuse { operation, object: Lock::Mutex, fault }), expect);
    }

    #[test]
    fn numbers_are_places_in_the_list() {
        for (number, judgement) in (0..).zip(Judgement::ALL) {
            assert_eq!(Judgement::from_u8(number), Some(judgement));
        }
        assert_eq!(Judgement::from_u8(Judgement::ALL.len() as u8), None);
    }

    #[test]
    fn every_misuse_has_a_word_but_a_null_pointer() {
        check(Operation::Unlock, Fault::NotHeld, Some(Judgement::ForeignUnlock));
        check(Operation::WaitWith, Fault::HeldByOther, Some(Judgement::ForeignUnlock));
        check(Operation::Lock, Fault::HeldByOther, Some(Judgement::Misuse));
        check(Operation::Lock, Fault::Destroyed, Some(Judgement::Destroyed));
        check(Operation::Destroy, Fault::Held, Some(Judgement::Destroyed));
        check(Operation::Free, Fault::Awaited, Some(Judgement::Destroyed));
        check(Operation::Lock, Fault::Held, Some(Judgement::Misuse));
        check(Operation::Wait, Fault::Uninitialized, Some(Judgement::Misuse));
        check(Operation::Lock, Fault::Null, None);
    }

    #[test]
    fn misuse_allows_every_misuse() {
        let bits = Judgement::Misuse.allowed_bits();
        for allowed in [Judgement::Misuse, Judgement::ForeignUnlock, Judgement::Destroyed] {
            assert!(bits & allowed.bit() != 0);
        }
        assert!(bits & Judgement::SelfDeadlock.bit() == 0);
    }
}
