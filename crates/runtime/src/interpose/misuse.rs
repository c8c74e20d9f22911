//! Misuse of synchronization objects.
//!
//! libc leaves most of this undefined and does not report it. A destroyed object is recognized by
//! its memory: glibc marks mutexes itself, and we mark the others. Creating a new object in the
//! same memory, by constructor, initializer or call, overwrites the mark, and so does any other
//! use of the memory; so a correct program is never accused. Zeroed memory is an initialized
//! object.
//!
//! Rules are checked when the operation is performed. Only objects that cannot be read at all, at
//! a null pointer or in freed memory, are detected before.
//!
//! A misuse ends the run. What is stored are codes ([`raddle_trace::misuse`]); the parent turns
//! them into words. Destroying an object is a scheduling point, like every other operation on
//! it, so a thread can be preempted before it.
//!
//! Limits: an object that is destroyed without a call, such as a `std::mutex`, is known to be
//! gone only when its memory is freed.

use core::sync::atomic::Ordering;

use raddle_trace::control::Ending;
use raddle_trace::misuse::{Fault, Misuse, Operation};
use raddle_trace::record::{Lock, Wake};

use crate::sched::object::NOBODY;
use crate::sched::thread::{NEVER, Wait};
use crate::sched::{self, SCHED, Sched};
use crate::{die, freed, hook, shared};

/// The first bytes of a destroyed object. Half of it is a spin lock's value.
const DESTROYED: u64 = 0xd1ed_7add_d1ed_7add;

/// An operation of a thread on an object.
#[derive(Clone, Copy)]
pub(crate) struct ObjectOp {
    pub(crate) me: u32,
    pub(crate) pc: u64,
    pub(crate) at: u64,
    pub(crate) operation: Operation,
    pub(crate) object: Lock,
}

impl ObjectOp {
    /// Starts most operations. Returns when the operation may be performed on a valid object,
    /// with how the wait ended.
    pub(crate) fn begin(self, wait: Wait, deadline: u64) -> Wake {
        self.approach();
        let wake = hook::sync(self.me, self.pc, wait, deadline);
        self.check();
        wake
    }

    /// The same for an operation that fails instead of waiting: a thread that does nothing else
    /// spins.
    pub(crate) fn attempt(self) {
        self.approach();
        sched::visible(self.me, self.pc, Wait::Nothing, NEVER, true);
        self.check();
    }

    /// The same for destruction: no thread may hold the object or wait for it.
    pub(crate) fn destroy(self, wait: Wait) {
        self.approach();
        hook::sync(self.me, self.pc, wait, NEVER);
        self.check_memory();
        let fault = in_use(&SCHED.lock(), self.at, self.object);
        if let Some(fault) = fault {
            self.wrong(fault);
        }
    }

    /// Announces what the thread will touch, which must be valid memory.
    pub(crate) fn approach(self) {
        self.check_memory();
        let reads = matches!(
            self.operation,
            Operation::ReadLock | Operation::TryReadLock | Operation::Value
        );
        hook::about_to(self.me, self.at, !reads);
    }

    /// Checks that the object is in valid memory. Call it before looking at the object.
    pub(crate) fn check_memory(self) {
        if self.at < 4096 {
            self.wrong(Fault::Null);
        }
        if freed::is_freed(self.at) {
            self.wrong(Fault::Freed);
        }
    }

    /// Checks that the object can be operated on. Call it when the operation is performed.
    pub(crate) fn check(self) {
        self.check_memory();
        if is_destroyed(self.at, self.object) {
            self.wrong(Fault::Destroyed);
        }
        if !is_plausible(self.at, self.object) {
            self.wrong(Fault::Uninitialized);
        }
    }

    /// Ends the run with this fault.
    pub(crate) fn wrong(self, fault: Fault) -> ! {
        let codes = Misuse { operation: self.operation, object: self.object, fault }.codes();
        for (to, code) in shared::control().misuse.iter().zip(codes) {
            to.store(code, Ordering::Relaxed);
        }
        die::stop(Ending::Misuse, self.me, self.pc, self.at)
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

/// Whether the memory can be an object: bits that glibc never sets rule it out.
fn is_plausible(at: u64, kind: Lock) -> bool {
    match kind {
        // Between the type and the priority ceiling, only some bits are in use.
        Lock::Mutex => word(at, MUTEX_KIND) & 0x0007_fc0c == 0,
        // The preference at byte 48 has one of three values.
        Lock::RwLock => word(at, 12) <= 2,
        // The number of participants is at byte 8, and never 0.
        Lock::Barrier => word(at, 2) != 0,
        _ => true,
    }
}

fn kernel_id(thread: u32) -> u32 {
    shared::slot(thread).kernel_id.load(Ordering::Relaxed)
}

/// For these mutex types glibc returns an error, or tracks the owner in another way.
const ERRORCHECK_OR_RECURSIVE: [u32; 2] = [1, 2];
const ROBUST_OR_PRIORITY: u32 = 16 | 32 | 64;

/// Checks that the thread that is about to release a mutex owns it.
pub(super) fn check_owner(op: ObjectOp) {
    // libc keeps the owner in the word at byte 8, also for locks that we did not see.
    let is_locked = word(op.at, 0) != 0;
    if is_locked && word(op.at, 2) == kernel_id(op.me) {
        return;
    }
    let kind = word(op.at, MUTEX_KIND);
    let tells = ERRORCHECK_OR_RECURSIVE.contains(&(kind & 3)) || kind & ROBUST_OR_PRIORITY != 0;
    let model = SCHED.lock().objects.get(&op.at).map_or(NOBODY, |object| object.owner);
    if tells || is_locked && model == op.me {
        return;
    }
    op.wrong(if is_locked { Fault::HeldByOther } else { Fault::NotHeld });
}

/// Checks that a reader-writer lock that is about to be released is held.
pub(super) fn check_held(op: ObjectOp) {
    let kernel_id = kernel_id(op.me);
    // glibc: the number of readers above three flag bits, the writer at byte 24.
    let (n_readers, writer) = (word(op.at, 0) >> 3, word(op.at, 6));
    if writer != 0 && writer != kernel_id {
        op.wrong(Fault::HeldByOther);
    }
    if writer == 0 && n_readers == 0 {
        op.wrong(Fault::NotHeld);
    }
}

/// How an object is in use, according to the model and to libc's data in it.
fn in_use(sched: &Sched, at: u64, kind: Lock) -> Option<Fault> {
    let waits = |on: Wait| !sched.waiters(|wait| wait == on).is_empty();
    let object = sched.objects.get(&at).filter(|object| object.kind == kind);
    let is_owned = object.is_some_and(|object| object.owner != NOBODY);
    match kind {
        Lock::Mutex => (is_owned && word(at, 0) != 0).then_some(Fault::Held),
        Lock::RwLock => {
            let is_held = is_owned || object.is_some_and(|object| !object.readers.is_empty());
            (is_held && (word(at, 0) >> 3 != 0 || word(at, 6) != 0)).then_some(Fault::Held)
        }
        Lock::Spin => (is_owned && word(at, 0) == 0).then_some(Fault::Held),
        Lock::Cond => waits(Wait::Cond(at)).then_some(Fault::Awaited),
        Lock::Semaphore => (sched::semaphore_value(at) == 0 && waits(Wait::Semaphore(at)))
            .then_some(Fault::Awaited),
        Lock::Barrier => object.is_some_and(|object| object.arrived > 0).then_some(Fault::Awaited),
        Lock::Annotated => None,
    }
}

/// Checks a block that is about to be freed together with all objects in it.
pub(super) fn check_block(me: Option<u32>, pc: u64, block: u64, bytes: u64) {
    let (low, high) = (block, block + bytes);
    let mut sched = SCHED.lock();
    while let Some((at, object)) = sched.objects.first_in(low..high) {
        let object = object.kind;
        if let (Some(me), Some(fault)) = (me, in_use(&sched, at, object)) {
            drop(sched);
            ObjectOp { me, pc, at, operation: Operation::Free, object }.wrong(fault);
        }
        sched.objects.remove(&at);
    }
}
