//! From ids to a report: names for threads, code and memory.
//!
//! Names come from the debug information of a run's modules, through one [`Cache`] per command,
//! and from its trace, which says what was allocated and who called whom.

mod access;
mod allowed;
mod remark;
mod difference;
mod failure;
mod hunt;
mod id;
mod isolation;
mod localization;
mod outside;
mod trace;

use raddle_symbols::Cache;

pub use self::hunt::{HuntInput, NO_RUN, trials};
pub use self::localization::LocalizationInput;
pub use self::trace::stats;

/// Gives names to ids.
pub struct Names<'a> {
    cache: &'a Cache,
    /// Whether there is no time to read whole traces.
    is_late: fn() -> bool,
}

impl<'a> Names<'a> {
    /// Names from the modules in a cache.
    #[must_use]
    pub fn new(cache: &'a Cache) -> Self {
        Self { cache, is_late: || false }
    }

    /// Traces are read only as long as it is not late. Then some memory has no name.
    #[must_use]
    pub fn unless(self, is_late: fn() -> bool) -> Self {
        Self { is_late, ..self }
    }
}
