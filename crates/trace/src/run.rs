//! What is known about a run apart from its events.

use serde::{Deserialize, Serialize};

use crate::control::{Mode, Policy};
use crate::id::{Addr, Pc, Site, ThreadId};
use crate::own::is_own_library;

/// A module that was loaded: the executable or a shared library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Its path.
    pub path: String,
    /// Its build-id in hexadecimal; empty if it has none.
    pub build_id: String,
    /// Load address, to be subtracted from an address to get one in the file.
    pub base: u64,
    /// First mapped address.
    pub low: u64,
    /// End of the last mapping.
    pub high: u64,
}

impl Module {
    /// Whether it contains the address.
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        (self.low..self.high).contains(&address)
    }
}

/// A thread of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// Its number.
    pub id: ThreadId,
    /// Its spawn path: `main`, `main/1`, `main/2/1`.
    pub name: String,
    /// The name that the program gave it, if any.
    pub label: Option<String>,
    /// Its stack: low end and high end.
    pub stack: (Addr, Addr),
}

/// Everything that a trace knows about its run apart from the events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Program and arguments.
    pub command: Vec<String>,
    /// The working directory.
    pub directory: String,
    /// Under control or free.
    pub mode: Mode,
    /// The scheduling policy; none in free mode.
    pub policy: Option<Policy>,
    /// Seed of all choices.
    pub seed: u64,
    /// Loaded modules, the executable first.
    pub modules: Vec<Module>,
    /// Threads by number.
    pub threads: Vec<Thread>,
    /// How it ended, as text; none while it runs.
    pub ending: Option<String>,
}

impl Run {
    /// The site of a code address; [`Site::UNKNOWN`] if it is in no module.
    #[must_use]
    pub fn site(&self, pc: Pc) -> Site {
        self.modules
            .iter()
            .find(|module| module.contains(pc.0))
            .map_or(Site::UNKNOWN, |module| Site::new(module.path.as_bytes(), pc.0 - module.base))
    }

    /// The code address of a site in this run; none if its module is not loaded.
    #[must_use]
    pub fn pc(&self, site: Site) -> Option<Pc> {
        let is_in = |module: &&Module| Site::new(module.path.as_bytes(), site.offset()) == site;
        self.modules.iter().find(is_in).map(|module| Pc(module.base + site.offset()))
    }

    /// Whether a code address is in one of the program's own modules.
    #[must_use]
    pub fn is_own(&self, pc: Pc) -> bool {
        let at = self.modules.iter().position(|module| module.contains(pc.0));
        at.is_some_and(|at| at == 0 || is_own_library(self.modules[at].path.as_bytes()))
    }
}
