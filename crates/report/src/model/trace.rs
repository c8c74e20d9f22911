//! What commands about traces and clips have to say.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::finding::Finding;

/// What a trace implies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// Events of the trace.
    pub events: u64,
    /// What could go wrong, the most promising first.
    pub anomalies: Vec<Finding>,
    /// How many anomalies were predicted, with those that are left out.
    pub predicted: usize,
}

/// What came of replaying a clip.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Replay {
    /// How often it was replayed.
    pub times: u64,
    /// How often it ended as the clip says.
    pub reproduced: u64,
    /// How often it could not be followed.
    pub diverged: u64,
    /// What the user should know beside that; left out if there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What a trace holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stats {
    /// Program and arguments.
    pub command: Vec<String>,
    /// How the run ended; none if that is not known.
    pub ending: Option<String>,
    /// Events.
    pub events: u64,
    /// Accesses among them that repeat earlier ones and were only counted.
    pub repeats: u64,
    /// Threads.
    pub threads: u64,
    /// Pieces of memory.
    pub locations: u64,
    /// Locks.
    pub locks: u64,
    /// Size of the file.
    pub bytes: u64,
    /// Whether the recording was closed.
    pub complete: bool,
    /// How many there are of each kind of event.
    pub kinds: Vec<(String, u64)>,
}
