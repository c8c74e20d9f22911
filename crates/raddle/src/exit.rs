//! What raddle tells its caller.

use std::process::ExitCode;

/// How raddle exits. `git bisect run` understands the codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: nothing was found; a replay reproduced.
    Clean,
    /// 1: a bug was found; a replay ended in another way.
    Found,
    /// 2: raddle was used in a wrong way.
    Misuse,
    /// 125: this run cannot be judged.
    Unjudged,
    /// As the program that was run.
    Status(u8),
}

impl Exit {
    pub(crate) fn leave(self) -> ExitCode {
        ExitCode::from(self.code())
    }

    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Found => 1,
            Self::Misuse => 2,
            Self::Unjudged => 125,
            Self::Status(status) => status,
        }
    }
}
