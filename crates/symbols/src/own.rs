//! Which code is the program's own, for callers that do not handle names.
//!
//! An address is in the program's own code if one of its functions, including inlined ones, comes
//! from the program's own source in one of the program's own modules (see
//! [`site::SiteName::own_frame`](crate::site::SiteName::own_frame)). Debug information is
//! searched once per site; concurrent runs share the results.

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

use raddle_code::elf::Files;
use raddle_trace::id::{Pc, Site};
use raddle_trace::run::Run;
use rustc_hash::FxHashMap;

use crate::{Cache, Symbols};

/// Decides which code is the program's own.
pub struct OwnCode {
    files: Files,
    known: Mutex<FxHashMap<Site, bool>>,
}

thread_local! {
    // Images cannot move between threads, and parsing them takes longer than anything else here.
    static CACHE: RefCell<Option<Cache>> = const { RefCell::new(None) };
}

impl OwnCode {
    /// Decides by the debug information of these files.
    #[must_use]
    pub fn new(files: Files) -> Self {
        Self { files, known: Mutex::default() }
    }

    /// Whether a code address of a run is in the program's own code.
    #[must_use]
    pub fn contains(&self, run: &Run, pc: Pc) -> bool {
        if !run.is_own(pc) {
            return false;
        }
        let site = run.site(pc);
        if let Some(&known) = self.known().get(&site) {
            return known;
        }
        let is_own = CACHE.with_borrow_mut(|cache| {
            let cache = cache.get_or_insert_with(|| Cache::new(self.files.clone()));
            Symbols::new(&run.modules, cache).site(pc).own_frame().is_some()
        });
        self.known().insert(site, is_own);
        is_own
    }

    fn known(&self) -> std::sync::MutexGuard<'_, FxHashMap<Site, bool>> {
        // Entries are inserted atomically, so whatever a panicking thread left is consistent.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
