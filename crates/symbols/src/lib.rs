//! Names for addresses of the target.
//!
//! A run knows its modules: path, build-id, and where each was mapped. Their files provide the
//! names: code addresses through DWARF's line tables ([`site`]), global variables through its
//! types ([`variable`]), both through ELF's symbol tables where there is no DWARF. The rest is
//! derived from events: heap blocks ([`block`]) and the threads' stacks ([`stack`]). [`name`]
//! combines them to name any address. [`events`] describes an event in one line.
//!
//! A module's file is read on first use, once per [`Cache`]. If its build-id differs from the
//! recorded one, it was rebuilt: then it provides no names, rather than wrong ones, and
//! [`Symbols::complaints`] says so. Separate debug files are found as gdb finds them
//! ([`Cache::with_debug_root`]).
//!
//! All files are untrusted input: a damaged file, or one that is not ELF, means fewer names and a
//! complaint, never a panic.
//!
//! # Limits
//! - ELF files for 64-bit little-endian machines only.
//! - A module without a build-id cannot be checked; its file is trusted.
//! - A module's path must still refer to its file, relative to the current directory.
//! - Of split DWARF (`-gsplit-dwarf`), only what stays in the module is used: lines, not types.
//!   Supplementary files (`dwz -m`) are not read.
//! - [`Symbols`] caches through `&self`, so it stays on one thread.

use std::cell::{OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use raddle_code::elf::{ElfError, Files};
use raddle_trace::id::{Addr, Pc};
use raddle_trace::own::is_own_library;
use raddle_trace::run::Module;
use rustc_hash::FxHashMap;

pub mod site;
pub mod variable;
pub mod block;
pub mod calls;
pub mod stack;
pub mod name;
pub mod events;
pub mod own;
pub mod functions;

mod image;
mod debug_file;
mod table;
mod demangle;
mod dies;
mod index;
mod types;
mod layout;

use image::Image;
use layout::Query;
use site::SiteName;
use variable::Variable;

/// The module files read so far, by path and build-id. A command has one cache, which all of its
/// [`Symbols`] share.
#[derive(Clone)]
pub struct Cache {
    files: Files,
    debug_root: PathBuf,
    images: Rc<RefCell<FxHashMap<(String, String), Loaded>>>,
}

/// A module's file, if it provides names, and what is wrong with it.
type Loaded = (Option<Rc<Image>>, Vec<Complaint>);

impl Cache {
    /// An empty cache that reads through `files`.
    #[must_use]
    pub fn new(files: Files) -> Self {
        Self { files, debug_root: PathBuf::from("/usr/lib/debug"), images: Rc::default() }
    }

    /// Searches for separate debug files below `root` instead of `/usr/lib/debug`.
    #[must_use]
    pub fn with_debug_root(mut self, root: impl Into<PathBuf>) -> Self {
        self.debug_root = root.into();
        self
    }

    fn image(&self, module: &Module) -> Loaded {
        let key = (module.path.clone(), module.build_id.clone());
        if let Some(known) = self.images.borrow().get(&key) {
            return known.clone();
        }
        let mut complaints = Vec::new();
        let image = Image::load(module, &self.files, &self.debug_root, &mut complaints);
        let loaded = (image.map(Rc::new), complaints);
        self.images.borrow_mut().insert(key, loaded.clone());
        loaded
    }
}

impl Default for Cache {
    fn default() -> Self {
        Self::new(Files::default())
    }
}

/// The names in a run's modules.
pub struct Symbols {
    modules: Vec<Slot>,
    cache: Cache,
    shown_from: PathBuf,
    complaints: RefCell<Vec<Complaint>>,
    sites: RefCell<FxHashMap<Pc, Rc<SiteName>>>,
    variables: RefCell<KnownVariables>,
}

/// Previous queries and their results.
type KnownVariables = FxHashMap<(Addr, Query), Option<Rc<Variable>>>;

/// A module, and its file once requested. Without a file it provides no names.
struct Slot {
    module: Module,
    image: OnceCell<Option<Rc<Image>>>,
}

/// Why a module provides fewer names than it could.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Complaint {
    /// The file cannot be used.
    #[error("{0}; its code has no names")]
    File(ElfError),
    /// The DWARF is damaged.
    #[error("{path} has damaged debug information ({reason}); its code has no lines")]
    Damaged {
        /// The module.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no DWARF. Reported only for the executable, as libraries seldom have it.
    #[error("{path} has no debug information; compile it with -g for lines and variables")]
    NoDebug {
        /// The module.
        path: String,
    },
    /// The DWARF is split over object files.
    #[error("{path} was compiled with -gsplit-dwarf; its variables have no members")]
    Split {
        /// The module.
        path: String,
    },
}

impl Symbols {
    /// The names in these modules, the executable first. Reads nothing yet.
    #[must_use]
    pub fn new(modules: &[Module], cache: &Cache) -> Self {
        let slot = |module: &Module| Slot { module: module.clone(), image: OnceCell::new() };
        Self {
            modules: modules.iter().map(slot).collect(),
            cache: cache.clone(),
            shown_from: std::env::current_dir().unwrap_or_default(),
            complaints: RefCell::default(),
            sites: RefCell::default(),
            variables: RefCell::default(),
        }
    }

    /// Shows source files relative to `directory` instead of the current one.
    #[must_use]
    pub fn shown_from(mut self, directory: impl Into<PathBuf>) -> Self {
        self.shown_from = directory.into();
        self
    }

    /// The problems so far. Each module complains at most once for each reason, and only after a
    /// name in it was requested.
    #[must_use]
    pub fn complaints(&self) -> Vec<Complaint> {
        self.complaints.borrow().clone()
    }

    /// The module that contains an address.
    #[must_use]
    pub fn module(&self, address: u64) -> Option<&Module> {
        self.slot(address).map(|slot| &slot.module)
    }

    fn slot(&self, address: u64) -> Option<&Slot> {
        self.modules.iter().find(|slot| slot.module.contains(address))
    }

    /// Whether a module belongs to the program.
    fn is_program(&self, slot: &Slot) -> bool {
        let is_executable = self.modules.first().is_some_and(|first| std::ptr::eq(first, slot));
        is_executable || is_own_library(slot.module.path.as_bytes())
    }

    /// The file of a module, read on first use.
    fn image<'a>(&'a self, slot: &'a Slot) -> Option<&'a Image> {
        let load = || {
            let (image, mut complaints) = self.cache.image(&slot.module);
            let is_executable = self.modules.first().is_some_and(|first| std::ptr::eq(first, slot));
            if is_executable && image.as_ref().is_some_and(|image| image.debug.is_none()) {
                complaints.push(Complaint::NoDebug { path: slot.module.path.clone() });
            }
            if image.as_ref().is_some_and(|image| image.is_split()) {
                complaints.push(Complaint::Split { path: slot.module.path.clone() });
            }
            self.complaints.borrow_mut().append(&mut complaints);
            image
        };
        slot.image.get_or_init(load).as_deref()
    }

    /// A source file in short form: relative to the directory that we show from, or else its base
    /// name.
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
