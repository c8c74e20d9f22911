//! Synchronization objects used against their rules.
//!
//! libc says of most of these that they are undefined, and lets them pass. A destroyed object
//! is known by what its memory holds: glibc marks a mutex itself, and the others get a mark of
//! ours. Whoever makes a new object of the memory, by a constructor, an initializer or a call,
//! overwrites the mark, and so does any other use of the memory: nobody has to tell us, and
//! a correct program is never accused. Memory of zeros is an initialized object.
//!
//! Rules are checked when the operation is performed. Only what could not be read at all, a
//! null pointer or freed memory, is found before.

use core::sync::atomic::Ordering;

use raddle_trace::control::Ending;
use raddle_trace::record::Lock;

use crate::die::Line;
use crate::sched::object::{NOBODY, Object};
use crate::sched::thread::Wait;
use crate::sched::{SCHED, Sched};
use crate::{freed, hook, shared};

/// What a destroyed object's first bytes hold. Half of it is a spin lock's value.
const DESTROYED: u64 = 0xd1ed_7add_d1ed_7add;

/// An operation of a thread on an object.
#[derive(Clone, Copy)]
pub(super) struct Act {
    pub(super) me: u32,
    pub(super) pc: u64,
    pub(super) at: u64,
    /// Such as «locks».
    pub(super) verb: &'static str,
    pub(super) kind: Lock,
}

impl Act {
    /// The object is there, as far as memory goes. To be asked before it is looked at.
    pub(super) fn check_memory(self) {
        if self.at < 4096 {
            self.wrong("through a null pointer");
        }
        if freed::is_freed(self.at) {
            self.wrong("in memory that was freed");
        }
    }

    /// The object can be operated on. To be asked when that is done.
    pub(super) fn check(self) {
        self.check_memory();
        if is_destroyed(self.at, self.kind) {
            self.wrong("that was destroyed");
        }
        if !is_plausible(self.at, self.kind) {
            self.wrong("that was never initialized");
        }
    }

    /// Ends the run. `how` goes on after what the object is.
    pub(super) fn wrong(self, how: &str) -> ! {
        let mut line = Line { bytes: [0; 512], len: 0 };
        let noun = noun(self.kind);
        let _ = core::fmt::Write::write_fmt(&mut line, format_args!("{} {noun} {how}", self.verb));
        hook::stop(Ending::Misuse, self.me, self.pc, self.at, &line.bytes[..line.len]);
    }
}

fn noun(kind: Lock) -> &'static str {
    match kind {
        Lock::RwLock => "a reader-writer lock",
        Lock::Spin => "a spin lock",
        Lock::Cond => "a condition variable",
        Lock::Semaphore => "a semaphore",
        Lock::Barrier => "a barrier",
        _ => "a mutex",
    }
}

fn word(at: u64, index: usize) -> u32 {
    // SAFETY: within the object that the program passed, in memory that was not freed.
    unsafe { *(at as *const u32).add(index) }
}

/// glibc's type and flags of a mutex are the word at byte 16, and -1 if it was destroyed.
const MUTEX_KIND: usize = 4;

fn is_destroyed(at: u64, kind: Lock) -> bool {
    match kind {
        Lock::Mutex => word(at, MUTEX_KIND) == u32::MAX,
        Lock::Spin => word(at, 0) == DESTROYED as u32,
        _ => word(at, 0) == DESTROYED as u32 && word(at, 1) == (DESTROYED >> 32) as u32,
    }
}

/// Marks an object that the program has destroyed.
pub(super) fn mark_destroyed(at: u64, kind: Lock) {
    match kind {
        Lock::Mutex => {}
        // SAFETY: the object's own memory, which holds nothing any more.
        Lock::Spin => unsafe { *(at as *mut u32) = DESTROYED as u32 },
        // SAFETY: as above; all of them have at least eight bytes.
        _ => unsafe { (at as *mut u64).write_unaligned(DESTROYED) },
    }
}

/// Whether the memory can be an object: bits that glibc never sets tell that it is not.
fn is_plausible(at: u64, kind: Lock) -> bool {
    match kind {
        // Between the type and the priority ceiling only some bits are in use.
        Lock::Mutex => word(at, MUTEX_KIND) & 0x0007_fc0c == 0,
        // The preference at byte 48 is one of three.
        Lock::RwLock => word(at, 12) <= 2,
        // How many it takes is at byte 8, and never 0.
        Lock::Barrier => word(at, 2) != 0,
        _ => true,
    }
}

fn kernel_id(thread: u32) -> u32 {
    shared::slot(thread).kernel_id.load(Ordering::Relaxed)
}

/// glibc returns an error for these types of mutexes, or knows the owner in another way.
const ERRORCHECK_OR_RECURSIVE: [u32; 2] = [1, 2];
const ROBUST_OR_PRIORITY: u32 = 16 | 32 | 64;

/// A mutex is about to be released: by its owner, it should be.
pub(super) fn check_owner(act: Act) {
    // libc keeps the owner in the word at byte 8, also of what was locked out of our sight.
    let is_locked = word(act.at, 0) != 0;
    if is_locked && word(act.at, 2) == kernel_id(act.me) {
        return;
    }
    let kind = word(act.at, MUTEX_KIND);
    let tells = ERRORCHECK_OR_RECURSIVE.contains(&(kind & 3)) || kind & ROBUST_OR_PRIORITY != 0;
    let model = SCHED.lock().objects.get(&act.at).map_or(NOBODY, |object| object.owner);
    if tells || is_locked && model == act.me {
        return;
    }
    act.wrong(if is_locked { "that another thread holds" } else { "that nobody holds" });
}

/// A reader-writer lock is about to be released: somebody should have it.
pub(super) fn check_held(act: Act) {
    let kernel_id = kernel_id(act.me);
    // glibc: the number of readers above three bits of flags, the writer at byte 24.
    let (n_readers, writer) = (word(act.at, 0) >> 3, word(act.at, 6));
    if writer != 0 && writer != kernel_id {
        act.wrong("that another thread holds");
    }
    if writer == 0 && n_readers == 0 {
        act.wrong("that nobody holds");
    }
}

/// An object is about to be destroyed: nobody should have it or wait for it.
pub(super) fn check_unused(act: Act) {
    let sched = SCHED.lock();
    let in_use = sched.objects.get(&act.at).and_then(|object| in_use(&sched, act.at, object));
    drop(sched);
    if let Some(how) = in_use {
        act.wrong(how);
    }
}

/// In which way an object is in use, by the model and by what libc keeps in it.
fn in_use(sched: &Sched, at: u64, object: &Object) -> Option<&'static str> {
    let waits = |on: Wait| !sched.waiters(|wait| wait == on).is_empty();
    match object.kind {
        Lock::Mutex => (object.owner != NOBODY && word(at, 0) != 0).then_some("that is held"),
        Lock::RwLock => {
            let is_held = object.owner != NOBODY || !object.readers.is_empty();
            (is_held && (word(at, 0) >> 3 != 0 || word(at, 6) != 0)).then_some("that is held")
        }
        Lock::Spin => (object.owner != NOBODY && word(at, 0) == 0).then_some("that is held"),
        Lock::Cond => waits(Wait::Cond(at)).then_some("that a thread waits on"),
        Lock::Barrier => (object.arrived > 0).then_some("that a thread waits at"),
        _ => None,
    }
}

/// A block is about to be freed, and with it all objects in it.
pub(super) fn check_block(me: Option<u32>, pc: u64, block: u64, bytes: u64) {
    let (low, high) = (block, block + bytes);
    let mut sched = SCHED.lock();
    while let Some((at, object)) = sched.objects.first_in(low..high) {
        let (kind, how) = (object.kind, in_use(&sched, at, object));
        if let (Some(me), Some(how)) = (me, how) {
            drop(sched);
            Act { me, pc, at, verb: "frees the memory of", kind }.wrong(how);
        }
        sched.objects.remove(&at);
    }
}
