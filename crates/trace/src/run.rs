//! What is known about a run beside its events.

use serde::{Deserialize, Serialize};

use crate::control::{Mode, Policy};
use crate::id::{Addr, Pc, Site, ThreadId};

/// A module that was loaded: the executable or a shared library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Where it was found.
    pub path: String,
    /// The build-id in hexadecimal digits, empty if it has none.
    pub build_id: String,
    /// What to subtract from an address to get one of the file.
    pub base: u64,
    /// First mapped address.
    pub low: u64,
    /// End of the last mapping.
    pub high: u64,
}

impl Module {
    /// Whether the address lies in it.
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
    /// By spawn path: `main`, `main/1`, `main/2/1`.
    pub name: String,
    /// As the program calls it, if it does.
    pub label: Option<String>,
    /// Its stack: low end and high end.
    pub stack: (Addr, Addr),
}

/// All that a trace knows about its run beside the events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Where it ran.
    pub directory: String,
    /// Under control or free.
    pub mode: Mode,
    /// Who went next; none in free mode.
    pub policy: Option<Policy>,
    /// Seed of all choices.
    pub seed: u64,
    /// What was loaded; the executable first.
    pub modules: Vec<Module>,
    /// Who ran, by number.
    pub threads: Vec<Thread>,
    /// How it ended, in words; none while it runs.
    pub ending: Option<String>,
}

impl Run {
    /// The site of a code address, or [`Site::UNKNOWN`] if no module holds it.
    #[must_use]
    pub fn site(&self, pc: Pc) -> Site {
        self.modules
            .iter()
            .find(|module| module.contains(pc.0))
            .map_or(Site::UNKNOWN, |module| Site::new(module.path.as_bytes(), pc.0 - module.base))
    }
}
