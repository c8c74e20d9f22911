//! Being told to stop.
//!
//! An analysis of a large trace takes long, and the command that wants it may be over meanwhile:
//! its time is up, or the user has interrupted it. Loops that may take long ask
//! [`is_requested`] at bounded intervals and then finish with what they have. So an answer that is
//! given after [`request`] may be incomplete; it is never wrong.
//!
//! A command is over for all of its threads at once, so this is one flag for the whole process.

use std::sync::atomic::{AtomicBool, Ordering};

static IS_REQUESTED: AtomicBool = AtomicBool::new(false);

/// Stops all analyses, now and from now on.
pub fn request() {
    IS_REQUESTED.store(true, Ordering::Relaxed);
}

/// Whether analyses are to stop.
#[inline]
#[must_use]
pub fn is_requested() -> bool {
    IS_REQUESTED.load(Ordering::Relaxed)
}

/// Ends an iterator when analyses are to stop.
pub fn unless_stopped<T>(items: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    items.take_while(|_| !is_requested())
}
