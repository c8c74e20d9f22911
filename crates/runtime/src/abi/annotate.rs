//! What a program tells about its own synchronization.
//!
//! Acquire and release, locks of the program's own making, and fibers become events. Asking
//! to ignore accesses, or describing benign races, changes nothing: raddle shows what a
//! schedule does, and has no reports to keep quiet. For the same reason the interface to
//! ThreadSanitizer's reports exists, so that programs link, and has none to tell of.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};

use raddle_trace::record::{Kind, Lock, SHARED};

use super::stub::export;
use crate::sched::thread::{NEVER, Wait};
use crate::{hook, tls};

export! {
    __tsan_acquire => acquire;
    __tsan_release => release;
    __tsan_mutex_create => mutex_create;
    __tsan_mutex_destroy => mutex_destroy;
    __tsan_mutex_pre_lock => mutex_pre_lock;
    __tsan_mutex_post_lock => mutex_post_lock;
    __tsan_mutex_pre_unlock => mutex_pre_unlock;
    __tsan_switch_to_fiber => switch_to_fiber;
    __tsan_external_read => external_read;
    __tsan_external_write => external_write;
    AnnotateHappensBefore => annotate_before;
    AnnotateHappensAfter => annotate_after;
    WTFAnnotateHappensBefore => annotate_before;
    WTFAnnotateHappensAfter => annotate_after;
    AnnotateCondVarSignal => annotate_before;
    AnnotateCondVarSignalAll => annotate_before;
    AnnotateCondVarWait => annotate_after;
    AnnotateRWLockCreate => annotate_lock_create;
    AnnotateRWLockCreateStatic => annotate_lock_create;
    AnnotateRWLockDestroy => annotate_lock_destroy;
    AnnotateRWLockAcquired => annotate_lock_acquired;
    AnnotateRWLockReleased => annotate_lock_released;
    raddle_unit_begin => unit_begin;
    raddle_unit_end => unit_end;
}

/// A region that is meant to be atomic begins: `include/raddle.h` has the marks.
extern "C" fn unit_begin() {
    hook::record(Kind::UnitBegin, 0, 0, 0, hook::caller(), &[]);
}

/// It ends.
extern "C" fn unit_end() {
    hook::record(Kind::UnitEnd, 0, 0, 0, hook::caller(), &[]);
}

fn order(kind: Kind, at: u64) {
    let pc = hook::caller();
    if let Some(me) = hook::me() {
        hook::sync(me, pc, Wait::Nothing, NEVER);
    }
    hook::record(kind, 0, at, 0, pc, &[]);
}

extern "C" fn acquire(at: u64) {
    order(Kind::After, at);
}

extern "C" fn release(at: u64) {
    order(Kind::Before, at);
}

extern "C" fn annotate_before(_: *const u8, _: i32, at: u64) {
    order(Kind::Before, at);
}

extern "C" fn annotate_after(_: *const u8, _: i32, at: u64) {
    order(Kind::After, at);
}

/// Flags of `__tsan_mutex_*`.
const READ_LOCK: u32 = 1 << 3;
const TRY_LOCK: u32 = 1 << 4;
const TRY_LOCK_FAILED: u32 = 1 << 5;

fn lock_event(kind: Kind, at: u64, shared: bool) {
    let info = Lock::Annotated as u8 | if shared { SHARED } else { 0 };
    hook::record(kind, info, at, 0, hook::caller(), &[]);
}

extern "C" fn mutex_create(at: u64, _: u32) {
    hook::record(Kind::Init, Lock::Annotated as u8, at, 0, hook::caller(), &[]);
}

extern "C" fn mutex_destroy(at: u64, _: u32) {
    hook::record(Kind::Destroy, Lock::Annotated as u8, at, 0, hook::caller(), &[]);
}

extern "C" fn mutex_pre_lock(_: u64, _: u32) {
    if let Some(me) = hook::me() {
        hook::sync(me, hook::caller(), Wait::Nothing, NEVER);
    }
}

extern "C" fn mutex_post_lock(at: u64, flags: u32, _: i32) {
    if flags & TRY_LOCK == 0 || flags & TRY_LOCK_FAILED == 0 {
        lock_event(Kind::Acquire, at, flags & READ_LOCK != 0);
    }
}

extern "C" fn mutex_pre_unlock(at: u64, flags: u32) -> i32 {
    if let Some(me) = hook::me() {
        hook::sync(me, hook::caller(), Wait::Nothing, NEVER);
    }
    lock_event(Kind::Release, at, flags & READ_LOCK != 0);
    0
}

extern "C" fn annotate_lock_create(_: *const u8, _: i32, at: u64) {
    mutex_create(at, 0);
}

extern "C" fn annotate_lock_destroy(_: *const u8, _: i32, at: u64) {
    mutex_destroy(at, 0);
}

extern "C" fn annotate_lock_acquired(_: *const u8, _: i32, at: u64, writing: u64) {
    lock_event(Kind::Acquire, at, writing == 0);
}

extern "C" fn annotate_lock_released(_: *const u8, _: i32, at: u64, writing: u64) {
    lock_event(Kind::Release, at, writing == 0);
}

extern "C" fn external_read(at: u64, _: *mut c_void, _: *mut c_void) {
    hook::range(at, 1, false, hook::caller());
}

extern "C" fn external_write(at: u64, _: *mut c_void, _: *mut c_void) {
    hook::range(at, 1, true, hook::caller());
}

static FIBERS: AtomicU64 = AtomicU64::new(1);

/// A fiber's handle is a number that no address has.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn __tsan_create_fiber(_: u32) -> u64 {
    FIBERS.fetch_add(1, Ordering::Relaxed) << 4 | 1
}

#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn __tsan_get_current_fiber() -> u64 {
    match tls::get(tls::FIBER) {
        0 => {
            let fiber = __tsan_create_fiber(0);
            tls::set(tls::FIBER, fiber);
            fiber
        }
        fiber => fiber,
    }
}

extern "C" fn switch_to_fiber(fiber: u64, _: u32) {
    tls::set(tls::FIBER, fiber);
    hook::record(Kind::Fiber, 0, fiber, 0, hook::caller(), &[]);
}

/// Functions that a program may call and that have nothing to do here.
macro_rules! idle {
    ($($name:ident)*) => {$(
        #[cfg_attr(not(test), unsafe(no_mangle))]
        extern "C" fn $name() -> u64 {
            0
        }
    )*};
}

idle! {
    __tsan_destroy_fiber __tsan_set_fiber_name __tsan_flush_memory
    __tsan_ignore_thread_begin __tsan_ignore_thread_end
    __tsan_mutex_post_unlock __tsan_mutex_pre_signal __tsan_mutex_post_signal
    __tsan_mutex_pre_divert __tsan_mutex_post_divert
    __tsan_external_assign_tag __tsan_external_register_header __tsan_external_register_tag
    __tsan_get_alloc_stack __tsan_get_current_report __tsan_get_report_data __tsan_get_report_loc
    __tsan_get_report_loc_object_type __tsan_get_report_mop __tsan_get_report_mutex
    __tsan_get_report_stack __tsan_get_report_tag __tsan_get_report_thread
    __tsan_get_report_unique_tid __tsan_locate_address
    __tsan_testonly_barrier_init __tsan_testonly_barrier_wait
    __tsan_testonly_shadow_stack_current_size
    __tsan_java_acquire __tsan_java_alloc __tsan_java_finalize __tsan_java_find __tsan_java_fini
    __tsan_java_free __tsan_java_init __tsan_java_move __tsan_java_mutex_lock
    __tsan_java_mutex_lock_rec __tsan_java_mutex_read_lock __tsan_java_mutex_read_unlock
    __tsan_java_mutex_unlock __tsan_java_mutex_unlock_rec __tsan_java_release
    __tsan_java_release_store __tsan_on_report __tsan_symbolize_external __tsan_symbolize_external_ex
    AnnotateBenignRace AnnotateBenignRaceSized AnnotateEnableRaceDetection AnnotateExpectRace
    AnnotateFlushExpectedRaces AnnotateFlushState AnnotateIgnoreReadsBegin AnnotateIgnoreReadsEnd
    AnnotateIgnoreSyncBegin AnnotateIgnoreSyncEnd AnnotateIgnoreWritesBegin AnnotateIgnoreWritesEnd
    AnnotateMemoryIsInitialized AnnotateMemoryIsUninitialized AnnotateMutexIsNotPHB
    AnnotateMutexIsUsedAsCondVar AnnotateNewMemory AnnotateNoOp AnnotatePCQCreate AnnotatePCQDestroy
    AnnotatePCQGet AnnotatePCQPut AnnotatePublishMemoryRange AnnotateThreadName AnnotateTraceMemory
    AnnotateUnpublishMemoryRange WTFAnnotateBenignRaceSized RunningOnValgrind ThreadSanitizerQuery
}

/// How much slower a program runs under its tool, for programs that wait accordingly.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn ValgrindSlowdown() -> f64 {
    10.0
}
