//! Why an experiment could not be carried out.

use std::io;
use std::path::PathBuf;

use raddle_trace::file::{ReadError, TraceError, WriteError};
use raddle_trial::TrialError;

/// Why an experiment could not be carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The target could not be executed or judged.
    #[error(transparent)]
    Trial(#[from] TrialError),
    /// A trace could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A trace could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is no room for temporary files.
    #[error("cannot create a temporary directory: {0}; set TMPDIR to a writable directory")]
    Scratch(io::Error),
    /// A file of a kept run, or its directory.
    #[error("{}: {reason}", path.display())]
    Sample {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Kept runs are of a different build than the program.
    #[error(
        "the saved runs were made with a different build of the program; start over without --resume or --from"
    )]
    OtherBuild,
    /// No run could be judged.
    #[error("the program cannot be judged: {0}")]
    Unjudged(String),
}

impl From<TraceError> for LabError {
    fn from(error: TraceError) -> Self {
        match error {
            TraceError::Write(error) => Self::Write(error),
            TraceError::Read(error) => Self::Read(error),
        }
    }
}
