//! The runtime library that raddle carries.

use raddle_trial::target::Runtime;

/// The library.
pub(crate) const RUNTIME: Runtime = Runtime(include_bytes!(env!("RADDLE_RUNTIME")));
