//! From ids to a report: names for threads, code and memory.
//!
//! Names come from the debug information of a run's modules, through one [`Cache`] per command,
//! and from its trace, which says what was allocated and who called whom.

mod access;
mod allowed;
mod difference;
mod failure;
mod hunt;
mod id;
mod isolation;
mod localization;
mod trace;

use raddle_symbols::Cache;

pub use self::hunt::HuntInput;
pub use self::localization::LocalizationInput;
pub use self::trace::stats;

/// Gives names to ids.
pub struct Names<'a> {
    cache: &'a Cache,
}

impl<'a> Names<'a> {
    /// Names from the modules in a cache.
    #[must_use]
    pub fn new(cache: &'a Cache) -> Self {
        Self { cache }
    }
}
