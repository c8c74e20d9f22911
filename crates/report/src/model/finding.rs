//! A finding, with names.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::Access;
use super::failure::Failure;
use super::isolation::IsolationResult;

/// A finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The same as long as functions, variable and pattern are: a hash of these. Neither the kind
    /// nor a line number is part of it.
    pub id: String,
    /// What it is.
    pub kind: FindingKind,
    /// The pattern, such as `R1-W2-W1`; empty if there is none.
    pub pattern: String,
    /// What the accesses are about.
    pub variable: Option<String>,
    /// The accesses in the order that breaks.
    pub accesses: Vec<Access>,
    /// What became of it.
    pub verdict: Verdict,
    /// Why it is infeasible, or did no harm.
    pub why: Option<String>,
    /// What came of forcing it on runs that passed.
    pub forced: Option<Forced>,
    /// Which thread has to be late, if the failure needs that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// How the program fails.
    pub failure: Option<Failure>,
    /// The clip that shows it, relative to the output directory.
    pub clip: Option<String>,
    /// Context switches of the run that shows it.
    pub switches: usize,
    /// Where the failure began, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationResult>,
}

impl Finding {
    /// Whether it is worth a person's time: it fails, or a run shows what might have.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        match self.verdict {
            Verdict::Failing => true,
            Verdict::Benign => self.clip.is_some(),
            Verdict::Infeasible | Verdict::Untested => false,
        }
    }

    /// As a headline.
    #[must_use]
    pub fn headline(&self) -> &'static str {
        match (self.verdict, self.kind) {
            (Verdict::Benign, FindingKind::Deadlock) => "benign lock cycle",
            (
                Verdict::Benign | Verdict::Failing | Verdict::Infeasible | Verdict::Untested,
                kind,
            ) => kind.headline(),
        }
    }
}

/// What a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// Two accesses without a lock in common.
    Race,
    /// A unit of one thread broken by another thread, on one variable.
    Atomicity,
    /// The same on variables that belong together.
    MultiVariable,
    /// Accesses in the wrong order.
    Order,
    /// Threads that wait for each other.
    Deadlock,
    /// A failure that nothing explains.
    Failure,
}

impl FindingKind {
    /// As a headline.
    #[must_use]
    pub const fn headline(self) -> &'static str {
        match self {
            Self::Race => "race",
            Self::Atomicity => "atomicity violation",
            Self::MultiVariable => "atomicity violation of variables that belong together",
            Self::Order => "order violation",
            Self::Deadlock => "deadlock",
            Self::Failure => "failure",
        }
    }
}

/// What became of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The program fails.
    Failing,
    /// It happens without harm.
    Benign,
    /// It cannot be made to happen.
    Infeasible,
    /// It was not tried.
    Untested,
}

/// A thread that could run and has to stand still for a while, as on a busy machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delay {
    /// The thread.
    pub thread: String,
    /// For how long.
    pub ns: u64,
}

/// As in "needs main/2 delayed by 20 s".
impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { thread, ns } = self;
        // No more digits than anybody cares for.
        let ms = ns.div_ceil(1_000_000);
        if ms < 1_000 {
            write!(f, "{thread} delayed by {ms} ms")
        } else {
            let tenths = ms.div_ceil(100);
            match (tenths / 10, tenths % 10) {
                (whole, 0) => write!(f, "{thread} delayed by {whole} s"),
                (whole, tenth) => write!(f, "{thread} delayed by {whole}.{tenth} s"),
            }
        }
    }
}

/// What came of forcing an order on runs that passed: how many different schedules failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Forced {
    /// Schedules that failed in the same way.
    pub failed: usize,
    /// Schedules that did not.
    pub passed: usize,
}

impl Forced {
    /// How many schedules there were.
    #[must_use]
    pub const fn n(self) -> usize {
        self.failed + self.passed
    }
}
