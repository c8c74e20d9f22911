//! Annotations: what a program tells about its own synchronization.
//!
//! Acquire and release and fibers become events, and so do the program's own locks (`lock`). Requests to ignore
//! accesses, and descriptions of benign races, have no effect: raddle shows what a schedule does,
//! and has no race reports to suppress. The interface to ThreadSanitizer's reports exists for the
//! same reason only so that programs link; it reports nothing.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};

use raddle_trace::record::Kind;

use crate::export::export;
use crate::sched::thread::{NEVER, Wait};
use crate::{hook, tls};

export! {
    __tsan_acquire => acquire;
    __tsan_release => release;
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
    __tsan_java_acquire => acquire;
    __tsan_java_release => release;
    __tsan_java_release_store => release;
    raddle_unit_begin => unit_begin;
    raddle_unit_end => unit_end;
}

/// Starts a region that is meant to be atomic; the marks are in `include/raddle.h`.
extern "C" fn unit_begin() {
    hook::record(Kind::UnitBegin, 0, 0, 0, hook::caller(), &[]);
}

/// Ends the region.
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

extern "C" fn external_read(at: u64, _: *mut c_void, _: *mut c_void) {
    hook::range(at, 1, false, hook::caller());
}

extern "C" fn external_write(at: u64, _: *mut c_void, _: *mut c_void) {
    hook::range(at, 1, true, hook::caller());
}

static FIBERS: AtomicU64 = AtomicU64::new(1);

/// A fiber's handle is a number that is not a valid address.
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

/// Functions that a program may call and that do nothing here.
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
    __tsan_testonly_shadow_stack_current_size
    __tsan_java_alloc __tsan_java_finalize __tsan_java_find __tsan_java_fini __tsan_java_free
    __tsan_java_init __tsan_java_move
    __tsan_on_report __tsan_symbolize_external __tsan_symbolize_external_ex
    AnnotateBenignRace AnnotateBenignRaceSized AnnotateEnableRaceDetection AnnotateExpectRace
    AnnotateFlushExpectedRaces AnnotateFlushState AnnotateIgnoreReadsBegin AnnotateIgnoreReadsEnd
    AnnotateIgnoreSyncBegin AnnotateIgnoreSyncEnd AnnotateIgnoreWritesBegin AnnotateIgnoreWritesEnd
    AnnotateMemoryIsInitialized AnnotateMemoryIsUninitialized AnnotateMutexIsNotPHB
    AnnotateMutexIsUsedAsCondVar AnnotateNewMemory AnnotateNoOp AnnotatePCQCreate AnnotatePCQDestroy
    AnnotatePCQGet AnnotatePCQPut AnnotatePublishMemoryRange AnnotateThreadName AnnotateTraceMemory
    AnnotateUnpublishMemoryRange WTFAnnotateBenignRaceSized RunningOnValgrind ThreadSanitizerQuery
}

/// How much slower a program runs under this tool, for programs that adapt their timeouts.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn ValgrindSlowdown() -> f64 {
    10.0
}
