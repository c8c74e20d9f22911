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
//! A misuse ends the run, unless the plan allows it ([`allow`]): then the operation is performed as
//! libc would, and the model follows. libc refuses a destroyed mutex, and one that is held is not
//! destroyed. Other objects work on after their destruction, which does nothing in libc; so they
//! are as if newly initialized.
//!
//! What is stored are codes ([`raddle_trace::misuse`]); the parent turns
//! them into words. Destroying an object is a scheduling point, like every other operation on
//! it, so a thread can be preempted before it.
//!
//! Limits: an object that is destroyed without a call, such as a `std::mutex`, is known to be
//! gone only when its memory is freed.

use core::sync::atomic::Ordering;

use raddle_trace::allow::Judgement;
use raddle_trace::control::Ending;
use raddle_trace::misuse::{Fault, Misuse, Operation};
use raddle_trace::record::{Lock, Wake};

use crate::sched::object::{NOBODY, Object};
use crate::sched::thread::{NEVER, Wait};
use crate::sched::{self, SCHED, Sched};
use crate::{allow, die, freed, hook, shared};

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

    /// The same for destruction: no thread may hold the object or wait for it. False if one does
    /// and the plan allows it.
    #[must_use]
    pub(crate) fn destroy(self, wait: Wait) -> bool {
        self.approach();
        hook::sync(self.me, self.pc, wait, NEVER);
        self.check_memory();
        let fault = in_use(&SCHED.lock(), self.at, self.object);
        if let Some(fault) = fault {
            self.wrong(fault);
        }
        fault.is_none()
    }

    /// Announces what the thread will touch, which must be valid memory.
    pub(crate) fn approach(self) {
        self.foresee_memory();
        let reads = matches!(
            self.operation,
            Operation::ReadLock | Operation::TryReadLock | Operation::Value
        );
        hook::about_to(self.me, self.at, !reads);
    }

    /// Checks that the object is in valid memory. Call it before looking at the object.
    pub(crate) fn foresee_memory(self) {
        self.look_at_memory(Self::foresee);
    }

    /// The same when the operation is performed.
    pub(crate) fn check_memory(self) {
        self.look_at_memory(Self::wrong);
    }

    /// Checks that the object can be operated on. Call it when the operation is performed.
    pub(crate) fn check(self) {
        self.look(Self::wrong);
    }

    /// The same again, for an operation that has waited since.
    pub(crate) fn check_again(self) {
        self.look(Self::foresee);
    }

    /// Whether its memory was freed, which is judged.
    fn look_at_memory(self, judge: fn(Self, Fault)) -> bool {
        if self.at < 4096 {
            judge(self, Fault::Null);
        }
        let is_freed = freed::is_freed(self.at);
        if is_freed {
            judge(self, Fault::Freed);
        }
        is_freed
    }

    /// Judges at most one fault.
    fn look(self, judge: fn(Self, Fault)) {
        let is_judged = self.look_at_memory(judge);
        if is_destroyed(self.at, self.object) {
            if !is_judged {
                judge(self, Fault::Destroyed);
            }
            revive(self.at, self.object);
        } else if !is_judged && !is_plausible(self.at, self.object) {
            judge(self, Fault::Uninitialized);
        }
    }

    /// Ends the run with this fault, unless that is allowed. Call it when the operation is
    /// performed, once.
    pub(crate) fn wrong(self, fault: Fault) {
        if !self.judgement(fault).is_some_and(|judgement| allow::lifts(judgement, self.pc)) {
            self.stop(fault);
        }
    }

    /// The same before the operation is performed.
    fn foresee(self, fault: Fault) {
        if !self.judgement(fault).is_some_and(|judgement| allow::is_allowed(judgement, self.pc)) {
            self.stop(fault);
        }
    }

    fn judgement(self, fault: Fault) -> Option<Judgement> {
        Judgement::on(Misuse { operation: self.operation, object: self.object, fault })
    }

    fn stop(self, fault: Fault) -> ! {
        let codes = Misuse { operation: self.operation, object: self.object, fault }.codes();
        for (to, code) in shared::control().misuse.iter().zip(codes) {
            to.store(code, Ordering::Relaxed);
        }
        die::stop(Ending::Misuse, self.me, self.pc, self.at)
    }

    /// Counts that the thread waits for a lock that it holds itself, if that is allowed. If not,
    /// the wait ends the run.
    pub(super) fn relock(self, deadline: u64) {
        if deadline == NEVER && allow::anywhere(Judgement::SelfDeadlock) {
            allow::lifts(Judgement::SelfDeadlock, self.pc);
        }
    }
}

fn word(at: u64, index: usize) -> u32 {
    // SAFETY: within the object that the program passed, in memory that was not freed.
    unsafe { *(at as *const u32).add(index) }
}

fn set_word(at: u64, index: usize, value: u32) {
    // SAFETY: within the object that the program passed, in memory that is still there.
    unsafe { *(at as *mut u32).add(index) = value }
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

/// Where a destroyed semaphore keeps its value, if it may be used again: glibc uses the first half
/// of its 32 bytes.
const SEMAPHORE_VALUE: usize = 4;

/// Marks an object that the program has destroyed.
pub(super) fn mark_destroyed(at: u64, kind: Lock) {
    if kind == Lock::Semaphore && allow::anywhere(Judgement::Destroyed) {
        set_word(at, SEMAPHORE_VALUE, word(at, 0));
    }
    match kind {
        Lock::Mutex => {}
        // SAFETY: the object's own memory, which holds nothing any more.
        Lock::Spin => unsafe { *(at as *mut u32) = DESTROYED as u32 },
        // SAFETY: as above; all of them have at least eight bytes.
        _ => unsafe { (at as *mut u64).write_unaligned(DESTROYED) },
    }
}

/// Makes a destroyed object usable, as if it were newly initialized, with its attributes. A
/// semaphore keeps its value. A mutex stays destroyed: libc refuses it.
fn revive(at: u64, kind: Lock) {
    let clear = |words: &[usize]| words.iter().for_each(|&index| set_word(at, index, 0));
    match kind {
        Lock::Mutex | Lock::Annotated => {}
        Lock::Spin => set_word(at, 0, 1),
        Lock::RwLock => release_rwlock(at),
        Lock::Cond => clear(&[0, 1]),
        Lock::Semaphore => {
            set_word(at, 0, word(at, SEMAPHORE_VALUE));
            set_word(at, 1, 0);
        }
        Lock::Barrier => {
            // Threads that have arrived, the round, and threads that have left.
            clear(&[0, 1, 4]);
            let mut sched = SCHED.lock();
            let (count, round) = (word(at, 2), sched.new_round());
            let object = Object { count, round, ..Object::new(Lock::Barrier) };
            sched.objects.insert(at, object);
        }
    }
}

/// Makes libc's data in a reader-writer lock those of one that nobody holds: all but whether it is
/// shared between processes (byte 28) and whom it prefers (byte 48).
fn release_rwlock(at: u64) {
    (0..7).for_each(|index| set_word(at, index, 0));
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

/// Checks that the thread that is about to release a mutex owns it. False if nobody does and the
/// plan allows it.
pub(super) fn check_owner(op: ObjectOp) -> bool {
    // libc keeps the owner in the word at byte 8, also for locks that we did not see.
    let is_locked = word(op.at, 0) != 0;
    if is_locked && word(op.at, 2) == kernel_id(op.me) {
        return true;
    }
    let kind = word(op.at, MUTEX_KIND);
    let tells = ERRORCHECK_OR_RECURSIVE.contains(&(kind & 3)) || kind & ROBUST_OR_PRIORITY != 0;
    let model = SCHED.lock().objects.get(&op.at).map_or(NOBODY, |object| object.owner);
    if tells || is_locked && model == op.me {
        return true;
    }
    op.wrong(if is_locked { Fault::HeldByOther } else { Fault::NotHeld });
    is_locked
}

/// Checks that a reader-writer lock that is about to be released is held. False if the thread must
/// not ask libc to release it, but the plan allows it: libc would count readers that there are
/// not. Then nobody holds the lock any more.
pub(super) fn check_held(op: ObjectOp) -> bool {
    let kernel_id = kernel_id(op.me);
    // glibc: the number of readers above three flag bits, the writer at byte 24.
    let (n_readers, writer) = (word(op.at, 0) >> 3, word(op.at, 6));
    if writer != 0 && writer != kernel_id {
        op.wrong(Fault::HeldByOther);
        release_rwlock(op.at);
        return false;
    }
    if writer == 0 && n_readers == 0 {
        op.wrong(Fault::NotHeld);
        return false;
    }
    true
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
    let (mut low, high) = (block, block + bytes);
    let mut sched = SCHED.lock();
    while let Some((at, object)) = sched.objects.first_in(low..high) {
        let object = object.kind;
        if let (Some(me), Some(fault)) = (me, in_use(&sched, at, object)) {
            drop(sched);
            ObjectOp { me, pc, at, operation: Operation::Free, object }.wrong(fault);
            // Whoever holds it or waits for it goes on with it, as long as the memory is kept.
            low = at + 1;
            sched = SCHED.lock();
        } else {
            sched.objects.remove(&at);
        }
    }
}

/// Forgets all objects in a block that goes back to libc.
pub(super) fn forget_block(block: u64, bytes: u64) {
    let mut sched = SCHED.lock();
    while let Some((at, _)) = sched.objects.first_in(block..block + bytes) {
        sched.objects.remove(&at);
    }
}
