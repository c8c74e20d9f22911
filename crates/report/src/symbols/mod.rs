//! Names for addresses of the target.
//!
//! A run knows its modules: path, build-id, and where each was mapped. From their files
//! come the names: code addresses through DWARF's line tables ([`site`]), global variables
//! through its types ([`variable`]), both through ELF's symbol tables where there is no
//! DWARF. What is in no file is told from events: heap blocks ([`block`]) and the threads'
//! stacks ([`stack`]). [`name`] joins them all into one question: what is at this address?
//!
//! A module's file is read when the first of its addresses is asked for, once. If its
//! build-id no longer is the recorded one, it was rebuilt: then it gives no names, rather
//! than wrong ones, and [`Symbols::complaints`] says so. Debug information in a file of its
//! own is found as gdb finds it ([`Symbols::with_debug_root`]).
//!
//! Everything that is read here is input: a file that is damaged, or no ELF file at all,
//! means fewer names and a complaint, never a panic.
//!
//! # Limits
//! - ELF files for 64-bit little-endian machines only.
//! - A module without a build-id cannot be checked; its file is believed.
//! - A module's path must still lead to its file, seen from the current directory.
//! - Of split DWARF (`-gsplit-dwarf`) only what stays in the module is used: lines, not
//!   types. Supplementary files (`dwz -m`) are not read.
//! - [`Symbols`] fills itself in behind `&self` and so stays on one thread.

use std::cell::{OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use raddle_trace::id::{Addr, Pc};
use raddle_trace::run::Module;
use rustc_hash::FxHashMap;

pub mod site;
pub mod variable;
pub mod block;
pub mod calls;
pub mod stack;
pub mod name;

pub(crate) mod image;
mod debug_file;
mod table;
mod demangle;
mod dies;
mod index;
mod types;
mod layout;

use image::Image;
use layout::Want;
use site::SiteName;
use variable::Variable;

/// The names that a run's modules can give.
pub struct Symbols {
    modules: Vec<Slot>,
    debug_root: PathBuf,
    shown_from: PathBuf,
    complaints: RefCell<Vec<Complaint>>,
    sites: RefCell<FxHashMap<Pc, Rc<SiteName>>>,
    variables: RefCell<KnownVariables>,
}

/// What was asked for before, and the answer.
type KnownVariables = FxHashMap<(Addr, Want), Option<Rc<Variable>>>;

/// A module, and its file once it was asked for. No file: it gives no names.
struct Slot {
    module: Module,
    image: OnceCell<Option<Image>>,
}

/// Why a module gives fewer names than one could wish for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Complaint {
    /// The operating system refused.
    #[error("{path} cannot be read ({reason}); its code has no names")]
    Unreadable {
        /// The module.
        path: String,
        /// In the words of the operating system.
        reason: String,
    },
    /// The file is not the one that ran.
    #[error(
        "{path} was rebuilt since the run (build-id {}, recorded {recorded}); its code has no names",
        found.as_deref().unwrap_or("none")
    )]
    Replaced {
        /// The module.
        path: String,
        /// The build-id of the file that ran.
        recorded: String,
        /// The build-id of the file that is there now.
        found: Option<String>,
    },
    /// The file is no ELF file, or the part of one.
    #[error("{path} is not an ELF file ({reason}); its code has no names")]
    NotElf {
        /// The module.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// DWARF that cannot be read.
    #[error("{path} has damaged debug information ({reason}); its code has no lines")]
    Damaged {
        /// The module.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No DWARF. Said of the executable only, as libraries seldom have it.
    #[error("{path} has no debug information; compile it with -g for lines and variables")]
    NoDebug {
        /// The module.
        path: String,
    },
    /// DWARF that is split over object files.
    #[error("{path} was compiled with -gsplit-dwarf; its variables have no members")]
    Split {
        /// The module.
        path: String,
    },
}

impl Symbols {
    /// The names of these modules, the executable first. Reads nothing yet.
    #[must_use]
    pub fn new(modules: &[Module]) -> Self {
        let slot = |module: &Module| Slot { module: module.clone(), image: OnceCell::new() };
        Self {
            modules: modules.iter().map(slot).collect(),
            debug_root: PathBuf::from("/usr/lib/debug"),
            shown_from: std::env::current_dir().unwrap_or_default(),
            complaints: RefCell::default(),
            sites: RefCell::default(),
            variables: RefCell::default(),
        }
    }

    /// Looks for separate debug files below `root` instead of `/usr/lib/debug`.
    #[must_use]
    pub fn with_debug_root(mut self, root: impl Into<PathBuf>) -> Self {
        self.debug_root = root.into();
        self
    }

    /// Shows source files relative to `directory` instead of the current one.
    #[must_use]
    pub fn shown_from(mut self, directory: impl Into<PathBuf>) -> Self {
        self.shown_from = directory.into();
        self
    }

    /// What went wrong so far. Each module complains at most once for each reason, and only
    /// after it was asked for a name.
    #[must_use]
    pub fn complaints(&self) -> Vec<Complaint> {
        self.complaints.borrow().clone()
    }

    /// The module that holds an address.
    #[must_use]
    pub fn module(&self, address: u64) -> Option<&Module> {
        self.slot(address).map(|slot| &slot.module)
    }

    fn slot(&self, address: u64) -> Option<&Slot> {
        self.modules.iter().find(|slot| slot.module.contains(address))
    }

    /// The file of a module, read now if it was not before.
    fn image<'a>(&'a self, slot: &'a Slot) -> Option<&'a Image> {
        let load = || {
            let mut complaints = Vec::new();
            let image = Image::load(&slot.module, &self.debug_root, &mut complaints);
            let is_executable = self.modules.first().is_some_and(|first| std::ptr::eq(first, slot));
            if is_executable && image.as_ref().is_some_and(|image| image.debug.is_none()) {
                complaints.push(Complaint::NoDebug { path: slot.module.path.clone() });
            }
            if image.as_ref().is_some_and(Image::is_split) {
                complaints.push(Complaint::Split { path: slot.module.path.clone() });
            }
            self.complaints.borrow_mut().append(&mut complaints);
            image
        };
        slot.image.get_or_init(load).as_ref()
    }

    /// A source file in its short form: relative to the directory that we show from, or
    /// else its base name.
    fn short(&self, file: &str) -> String {
        let path = Path::new(file);
        match path.strip_prefix(&self.shown_from) {
            Ok(inside) => inside.to_string_lossy().into_owned(),
            Err(_) => file_name(file).to_owned(),
        }
    }
}

/// The part of a path after its last slash.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
