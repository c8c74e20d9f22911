//! What localizing has to say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::Access;
use super::failure::Failure;
use super::finding::Forced;
use super::hunt::{Coverage, Stopped, Trials};

/// What localizing has to say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Localization {
    /// Runs that were compared.
    pub runs: Runs,
    /// Executions of the target, with those that checked suspects.
    pub trials: Trials,
    /// Why no more runs were made.
    pub stopped: Stopped,
    /// How much of the program's behavior was seen.
    pub coverage: Coverage,
    /// Patterns of the most frequent failure.
    pub patterns: Vec<Pattern>,
    /// Pairs of the most frequent failure.
    pub pairs: Vec<Pair>,
    /// Failures, the most frequent first.
    pub groups: Vec<Group>,
    /// How many patterns needed a window of how many entries.
    pub windows: Vec<(u8, usize)>,
    /// What else the user should know.
    pub notes: Vec<String>,
}

/// Runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Runs {
    /// Those that passed.
    pub passed: usize,
    /// Those that failed.
    pub failed: usize,
}

/// A failure, and what is to blame for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// How runs fail.
    pub failure: Failure,
    /// Runs that were compared.
    pub runs: Runs,
    /// Patterns, the most suspect first.
    pub patterns: Vec<Pattern>,
    /// Pairs, the most suspect first.
    pub pairs: Vec<Pair>,
}

/// A pattern with its rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pattern {
    /// Its rank, from 1.
    pub rank: usize,
    /// How many share the rank.
    pub ties: usize,
    /// How suspect it is.
    pub score: Score,
    /// Such as `R1-W2-R1`.
    pub pattern: String,
    /// What the accesses are about.
    pub variable: Option<String>,
    /// The accesses.
    pub accesses: Vec<Access>,
    /// The callers of the function of each access, innermost first.
    pub stacks: Vec<Vec<String>>,
    /// Passing runs that have it.
    pub passed: usize,
    /// Failing runs that have it.
    pub failed: usize,
    /// Whether executions show that it is a cause; none if that is not known.
    pub confirmed: Option<bool>,
    /// What came of forcing it on runs that passed.
    pub forced: Forced,
    /// Whether a failing run passes when it is flipped; none if that was not possible.
    pub gone: Option<bool>,
}

/// A pair, or two coupled pairs, with its rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    /// Its rank, from 1.
    pub rank: usize,
    /// The procedure that found it.
    pub procedure: Procedure,
    /// For procedure III: what the pairs were compared by.
    pub level: Option<String>,
    /// Head and tail of each pair.
    pub pairs: Vec<PairAccesses>,
    /// How suspect it is.
    pub score: Score,
    /// Passing runs that have it.
    pub passed: usize,
    /// Failing runs that have it.
    pub failed: usize,
    /// Whether executions show that it is a cause; none if that is not known.
    pub confirmed: Option<bool>,
    /// What came of forcing it on runs that passed.
    pub forced: Forced,
    /// Whether a failing run passes when it is flipped; none if that was not possible.
    pub gone: Option<bool>,
}

/// How a pair was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Procedure {
    /// LOCON's first: only failing runs have it.
    #[serde(rename = "I")]
    One,
    /// LOCON's second: passing runs have it the other way around.
    #[serde(rename = "II")]
    Two,
    /// LOCON's third: no passing run has both pairs.
    #[serde(rename = "III")]
    Three,
    /// Falcon's suspicion: failing runs have it more often.
    #[serde(rename = "often")]
    Often,
}

/// An access pair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairAccesses {
    /// The access that comes first.
    pub head: Access,
    /// The access that depends on it.
    pub tail: Access,
}

/// How suspect something is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Score {
    /// A number.
    Number(f64),
    /// More than any number, which JSON has no number for.
    Infinite(Infinite),
}

/// The word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Infinite {
    /// The word for it.
    #[serde(rename = "infinite")]
    Infinite,
}

impl Score {
    /// As a number.
    #[must_use]
    pub const fn number(self) -> f64 {
        match self {
            Self::Number(number) => number,
            Self::Infinite(_) => f64::INFINITY,
        }
    }
}

impl From<f64> for Score {
    fn from(number: f64) -> Self {
        if number.is_finite() { Self::Number(number) } else { Self::Infinite(Infinite::Infinite) }
    }
}
