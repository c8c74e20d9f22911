//! Schedules: which thread runs when, as a small printable value.
//!
//! A step prints as `T1 12 0x8f3a00000000124c`: thread 1 runs for 12 steps and stops before the
//! operation at that site. `T1 all` runs as long as it can, and an unknown site is omitted.
//! `choose 2` chooses the alternative with the number 2.
//!
//! Time is virtual and jumps to the next deadline when nobody can run, which repeats itself when
//! a schedule is followed. Where it jumps although somebody could run, a step of zero steps by
//! the last thread marks that: `T1 12`, `T1 0`, `T2 7`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::id::{Site, ThreadId};

/// An order of execution. The same program with the same inputs and the same schedule has the
/// same run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Schedule {
    /// Stretches and choices, in chronological order.
    pub steps: Vec<Step>,
}

/// One part of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// A thread runs for a while.
    Run {
        /// The thread.
        thread: ThreadId,
        /// Number of steps; `u64::MAX` for as long as it can.
        count: u64,
        /// The site of the operation before which it stops.
        site: Site,
    },
    /// A choice other than of a thread, such as which waiter a signal wakes.
    Choose {
        /// The number of the alternative.
        choose: u32,
    },
}

impl Schedule {
    /// Number of stretches that ended although their thread could have continued.
    #[must_use]
    pub fn n_runs(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step, Step::Run { .. })).count()
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Run { thread, count, site } => {
                write!(f, "T{} ", thread.0)?;
                match count {
                    u64::MAX => write!(f, "all")?,
                    count => write!(f, "{count}")?,
                }
                match site {
                    Site::UNKNOWN => Ok(()),
                    site => write!(f, " {site}"),
                }
            }
            Self::Choose { choose } => write!(f, "choose {choose}"),
        }
    }
}

/// Why a text is not a step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a step like `T1 12 0x8f3a00000000124c` or `choose 2`")]
pub struct StepError(String);

impl FromStr for Step {
    type Err = StepError;

    fn from_str(text: &str) -> Result<Self, StepError> {
        parse(text).ok_or_else(|| StepError(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Step> {
    let words: Vec<_> = text.split_whitespace().collect();
    let (thread, count, site) = match words[..] {
        ["choose", choose] => return Some(Step::Choose { choose: choose.parse().ok()? }),
        [thread, count] => (thread, count, Site::UNKNOWN),
        [thread, count, site] => {
            let digits = site.strip_prefix("0x")?;
            (thread, count, Site(u64::from_str_radix(digits, 16).ok()?))
        }
        _ => return None,
    };
    Some(Step::Run {
        thread: ThreadId(thread.strip_prefix('T')?.parse().ok()?),
        count: if count == "all" { u64::MAX } else { count.parse().ok()? },
        site,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn steps_read_as_they_print() {
        let run = |count, site| Step::Run { thread: ThreadId(1), count, site: Site(site) };
        for (step, text) in [
            (run(12, 0x8f3a_0000_0000_124c), "T1 12 0x8f3a00000000124c"),
            (run(12, 0), "T1 12"),
            (run(u64::MAX, 0), "T1 all"),
            (Step::Choose { choose: 2 }, "choose 2"),
        ] {
            assert_eq!(step.to_string(), text);
            assert_eq!(text.parse(), Ok(step));
        }
    }

    #[test]
    fn other_texts_are_no_steps() {
        for text in ["", "T1", "1 2", "T1 x", "T1 2 3", "T1 2 0x3 4", "choose", "choose -1"] {
            assert_eq!(text.parse::<Step>(), Err(StepError(text.to_owned())));
        }
    }

    pub(crate) fn any_schedule() -> impl Strategy<Value = Schedule> {
        let count = prop_oneof![any::<u64>(), Just(u64::MAX), 0..9_u64];
        let site = prop_oneof![any::<u64>(), Just(0)];
        let run = (any::<u32>(), count, site).prop_map(|(thread, count, site)| Step::Run {
            thread: ThreadId(thread),
            count,
            site: Site(site),
        });
        let choose = any::<u32>().prop_map(|choose| Step::Choose { choose });
        vec(prop_oneof![run, choose], 0..50).prop_map(|steps| Schedule { steps })
    }
}
