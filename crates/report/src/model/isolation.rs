//! What isolating has to say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::access::Action;

/// What isolating has to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Isolation {
    /// How the program fails.
    pub failure: String,
    /// Where it began; none if that was not found.
    pub cause: Option<Cause>,
    /// From the failure back to the cause.
    pub chain: Vec<Link>,
    /// Executions that it took.
    pub executions: Executions,
    /// Instructions that were executed one by one.
    pub instructions: Instructions,
    /// What else the user should know.
    pub notes: Vec<String>,
}

/// An isolation, or why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum IsolationResult {
    /// It was carried out.
    Done(Box<Isolation>),
    /// It was not possible.
    Failed {
        /// Why.
        error: String,
    },
}

/// Where a failure began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cause {
    /// What it is.
    pub kind: CauseKind,
    /// What the accesses are about, if it has a name.
    pub variable: Option<String>,
    /// The accesses.
    pub accesses: Vec<Value>,
}

/// What a cause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CauseKind {
    /// A harmful race.
    Race,
    /// An atomicity violation.
    Atomicity,
    /// An order violation.
    Order,
    /// A statement that computed a wrong value.
    Statement,
}

/// A step from the failure back to the cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// What it is.
    #[serde(flatten)]
    pub step: Step,
    /// The access.
    pub access: Value,
}

/// What a step is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "link", rename_all = "kebab-case")]
pub enum Step {
    /// The program fails.
    Failure {
        /// How.
        detail: String,
    },
    /// What the failure used was defined.
    Definition {
        /// Whether the definition was suppressed; else its own sources were followed.
        suppressed: bool,
    },
}

/// An access with its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Value {
    /// Which of the threads performed it, from 1.
    pub role: usize,
    /// The thread by spawn path.
    pub thread: String,
    /// What it did, in one letter.
    pub op: char,
    /// What it did.
    pub action: Action,
    /// The source file.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
    /// The function.
    pub function: Option<String>,
    /// File, line and function in words, or what else is known.
    pub site: String,
    /// What was read or written.
    pub value: Option<u64>,
    /// Where it is in memory.
    pub location: Option<String>,
}

/// Executions, as the paper's Table II counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Executions {
    /// The failing execution.
    pub original: usize,
    /// With something suppressed.
    pub suppression: usize,
    /// To check races.
    pub race: usize,
    /// To check violations.
    pub violation: usize,
    /// Only to watch memory, which the paper does not count.
    pub watch: usize,
}

/// Instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Instructions {
    /// Executed one by one.
    pub stepped: u64,
    /// Suppressed.
    pub skipped: u64,
}
