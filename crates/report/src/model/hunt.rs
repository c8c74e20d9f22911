//! What a hunt has to say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::finding::{Finding, Verdict};

/// What a hunt has to say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hunt {
    /// Executions.
    pub trials: Trials,
    /// Anomalies, and what became of them.
    pub anomalies: Anomalies,
    /// Runs that were recorded and analyzed.
    pub recorded: usize,
    /// Runs under other schedules, without a prediction.
    pub explored: usize,
    /// Why the search ended.
    pub stopped: Stopped,
    /// How much of the program's behavior was seen.
    pub coverage: Coverage,
    /// What was found: what fails first, the best explained first.
    pub findings: Vec<Finding>,
    /// What else the user should know.
    pub notes: Vec<String>,
}

impl Hunt {
    /// Whether nothing came of any order but that of the first run.
    #[must_use]
    pub const fn is_untested(&self) -> bool {
        let tried = self.anomalies.feasible + self.anomalies.infeasible + self.explored;
        tried == 0 && !matches!(self.stopped, Stopped::NoOrder)
    }

    /// The findings for people: those that fail, then lock cycles that did no harm.
    pub fn shown(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.is_shown())
    }

    /// The findings that fail.
    pub fn failing(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.verdict == Verdict::Failing)
    }
}

/// Executions of the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trials {
    /// All.
    pub total: usize,
    /// Those that failed.
    pub failed: usize,
    /// Predicted anomalies that could not be made to happen.
    pub infeasible: usize,
    /// Those that could not be judged.
    pub not_judged: usize,
}

/// Predicted anomalies, in PENELOPE's terms. Each is failing, benign, infeasible or untested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Anomalies {
    /// All.
    pub predicted: usize,
    /// Those that were seen in the run that they were predicted from.
    pub observed: usize,
    /// Those that were made to happen: failing and benign ones.
    pub feasible: usize,
    /// Those with which a run failed.
    pub failing: usize,
    /// Those that happened without harm.
    pub benign: usize,
    /// Those that could not be made to happen.
    pub infeasible: usize,
    /// Those that were not tried.
    pub untested: usize,
}

/// How much of the program's behavior was seen. An order is a pair or a triple of accesses by
/// different threads that followed each other, told apart by their places in the code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Coverage {
    /// Different orders.
    pub orders: usize,
    /// Runs, of those that were not made for a prediction, since the last one that showed
    /// anything new.
    pub since_new: usize,
    /// Of these, the ones whose orders were looked at. The others could have shown only a new
    /// failure.
    pub since_new_recorded: usize,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stopped {
    /// Enough was found.
    Found,
    /// Nothing new came any more.
    NothingNew,
    /// The limit on executions was reached.
    Runs,
    /// The time was up.
    Time,
    /// The user stopped it.
    Interrupted,
    /// The order of threads makes no difference.
    NoOrder,
}
