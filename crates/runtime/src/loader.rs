//! The loader's locks.
//!
//! glibc runs constructors and destructors under a recursive lock that `dlopen`, `dlclose`,
//! `dlsym` and others acquire, and the callbacks of `dl_iterate_phdr` under another. Neither is
//! locked through a function that we replace. But both are ordinary mutexes that hold the kernel's
//! id of their owner, so we look there: a thread that needs a lock of another thread waits in the
//! model, and one that holds a lock is not preempted. It gives up the turn only where it waits or
//! yields, since libc acquires these locks in more places than we replace.
//!
//! **Where they are.** Both are in the loader's `_rtld_global`. In a callback of
//! `dl_iterate_phdr`, the second one is the recursive mutex there that the calling thread owns,
//! and glibc keeps the first one directly before it. If it is not so, threads wait in the kernel
//! as in any other lock of libc ([`crate::sched`], the watchdog).

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use libc::{dl_phdr_info, size_t};

use crate::{modules, sys, tls};

unsafe extern "C" {
    fn dladdr1(
        address: *const c_void,
        info: *mut libc::Dl_info,
        extra: *mut *mut c_void,
        flags: c_int,
    ) -> c_int;
}

/// A lock of the loader.
#[derive(Clone, Copy)]
pub(crate) enum Lock {
    /// Held while libraries are loaded and unloaded, with their constructors and destructors.
    Load,
    /// Held while the list of modules is read or changed.
    List,
}

/// Addresses of both locks, in the order of [`Lock`]; 0 as long as they are not known.
static LOCKS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

impl Lock {
    /// The address of its mutex, if it is known.
    pub(crate) fn address(self) -> Option<u64> {
        match LOCKS[self as usize].load(Ordering::Relaxed) {
            0 => None,
            address => Some(address),
        }
    }

    /// The kernel's id of the thread that holds it; 0 if nobody does.
    fn owner(self) -> u32 {
        // SAFETY: a mutex of the loader, which is never unmapped.
        self.address().map_or(0, |at| unsafe { word(at, OWNER) }.load(Ordering::Relaxed))
    }

    /// The address of its mutex, if another thread holds it.
    pub(crate) fn held_by_other(self) -> Option<u64> {
        let owner = self.owner();
        self.address().filter(|_| owner != 0 && owner != me())
    }

    fn is_mine(self) -> bool {
        self.owner() == me()
    }
}

/// Offsets in a mutex: of its word, of how often its owner has acquired it, of the owner, of its
/// type. Its size.
const WORD: u64 = 0;
const COUNT: u64 = 4;
/// The owner's offset, for those who wait.
pub(crate) const OWNER: u64 = 8;
const KIND: u64 = 16;
const MUTEX_BYTES: u64 = 40;
const _: () = assert!(size_of::<libc::pthread_mutex_t>() == MUTEX_BYTES as usize);

/// A word of a mutex.
///
/// # Safety
/// `mutex` is the address of readable memory of a mutex's size that stays mapped.
unsafe fn word(mutex: u64, offset: u64) -> &'static AtomicU32 {
    // SAFETY: the caller's promise.
    unsafe { &*((mutex + offset) as *const AtomicU32) }
}

fn me() -> u32 {
    tls::get(tls::KERNEL_ID) as u32
}

/// Whether the running thread holds one of the locks.
pub(crate) fn is_inside() -> bool {
    Lock::Load.is_mine() || Lock::List.is_mine()
}

/// Whether a library may have been loaded since modules were last scanned.
static LOADED: AtomicBool = AtomicBool::new(false);

/// The running thread is about to load libraries.
pub(crate) fn will_load() {
    LOADED.store(true, Ordering::Relaxed);
}

/// Scans for modules that were loaded. Their constructors may still be running.
pub(crate) fn scan_loaded() {
    if LOADED.load(Ordering::Relaxed) && Lock::List.held_by_other().is_none() {
        LOADED.store(false, Ordering::Relaxed);
        modules::scan();
    }
}

/// Locates the locks. Call it before there are other threads.
pub(crate) fn start() {
    let Some((start, bytes)) = global_data() else { return };
    let mut search = Search { start, bytes, thread: sys::gettid(), found: 0 };
    modules::iterate(find, (&raw mut search).cast());
    if search.found != 0 {
        LOCKS[1].store(search.found, Ordering::Relaxed);
        LOCKS[0].store(search.found - MUTEX_BYTES, Ordering::Relaxed);
    }
}

/// Start and size of the loader's `_rtld_global`.
fn global_data() -> Option<(u64, u64)> {
    /// Asks `dladdr1` for the symbol's entry.
    const ENTRY: c_int = 1;
    // SAFETY: asks for the address of the loader's own variable.
    let start = unsafe { libc::dlsym(libc::RTLD_NEXT, c"_rtld_global".as_ptr()) };
    // SAFETY: all zeros is a valid description.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    let mut entry = core::ptr::null_mut();
    // SAFETY: an address, and where to put the answers.
    let status = unsafe { dladdr1(start, &raw mut info, &raw mut entry, ENTRY) };
    if start.is_null() || status == 0 || entry.is_null() {
        return None;
    }
    // SAFETY: the loader's entry of the symbol, which stays.
    let bytes = unsafe { (*entry.cast::<libc::Elf64_Sym>()).st_size };
    Some((start as u64, bytes))
}

/// Where to look for a mutex that a thread holds.
struct Search {
    start: u64,
    bytes: u64,
    thread: u32,
    /// Its address; 0 if there is none.
    found: u64,
}

unsafe extern "C" fn find(_: *mut dl_phdr_info, _: size_t, data: *mut c_void) -> c_int {
    // SAFETY: `start` passes its own search.
    let search = unsafe { &mut *data.cast::<Search>() };
    let last = search.start + search.bytes.saturating_sub(MUTEX_BYTES);
    let is_it = |&at: &u64| {
        // SAFETY: within the loader's data, by the bounds.
        let read = |mutex: u64, offset| unsafe { word(mutex, offset) }.load(Ordering::Relaxed);
        let is_free = |mutex| read(mutex, WORD) == 0 && read(mutex, OWNER) == 0;
        let is_recursive = |mutex| read(mutex, KIND) == libc::PTHREAD_MUTEX_RECURSIVE as u32;
        let before = at - MUTEX_BYTES;
        read(at, WORD) != 0
            && read(at, COUNT) == 1
            && read(at, OWNER) == search.thread
            && is_recursive(at)
            && is_free(before)
            && is_recursive(before)
    };
    search.found = (search.start + MUTEX_BYTES..last).step_by(8).find(is_it).unwrap_or(0);
    1
}
