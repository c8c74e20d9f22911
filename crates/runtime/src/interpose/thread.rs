//! Threads: creation, end, joining, cancellation.

use alloc::boxed::Box;
use core::arch::global_asm;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};

use libc::{c_char, c_int, clockid_t, pthread_attr_t, pthread_t, timespec};
use raddle_trace::record::{Kind, Wake};
use raddle_trace::remark::Remark;

use super::{affinity, clock, mutex};
use crate::export::{export, export_cancellable};
use crate::real::real;
use crate::sched::thread::{NEVER, Wait};
use crate::sched::{self, SCHED, Sched};
use crate::{allow, hook, key, shared, sys, tls};

export! { unsafe OTHER:
    pthread_create => create_inner;
}

export! {
    pthread_detach => detach;
    pthread_tryjoin_np => try_join;
    pthread_setname_np => set_name;
}

export_cancellable! { unsafe OTHER:
    pthread_join => join;
    pthread_timedjoin_np => timed_join;
    pthread_clockjoin_np => clock_join;
}

export_cancellable! {
    pthread_testcancel => test_cancel;
    pthread_cancel => cancel;
    pthread_setcancelstate => set_cancel_state;
    pthread_setcanceltype => set_cancel_type;
}

unsafe extern "C" {
    /// Start routine of every thread: registers it, runs the program's routine, and returns its
    /// result.
    fn raddle_thread_start(arg: *mut c_void) -> *mut c_void;
    /// The destructor of our thread key.
    pub(crate) fn raddle_thread_end(value: *mut c_void);
    fn pthread_attr_getdetachstate(attr: *const pthread_attr_t, state: *mut c_int) -> c_int;
}

global_asm!(
    ".text",
    ".hidden raddle_thread_start",
    ".globl raddle_thread_start",
    ".type raddle_thread_start,@function",
    "raddle_thread_start:",
    ".cfi_startproc",
    "sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "call {begin}",
    "mov rdi, rdx",
    "call rax",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_endproc",
    ".size raddle_thread_start, . - raddle_thread_start",
    begin = sym begin,
);

global_asm!(
    ".text",
    ".hidden raddle_thread_end",
    ".globl raddle_thread_end",
    ".type raddle_thread_end,@function",
    "raddle_thread_end:",
    ".cfi_startproc",
    "sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "call {take_due}",
    "test rax, rax",
    "je 2f",
    "mov rdi, rdx",
    "call rax",
    "2:",
    "call {end}",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_endproc",
    ".size raddle_thread_end, . - raddle_thread_end",
    take_due = sym key::take_due,
    end = sym end,
);

/// glibc's numbers for the state and type of cancellation.
const CANCEL_DISABLE: c_int = 1;
const CANCEL_DEFERRED: c_int = 0;
const CANCEL_ASYNCHRONOUS: c_int = 1;

type Routine = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// Start routine and argument of a thread, in two registers.
#[repr(C)]
struct Start {
    routine: usize,
    arg: usize,
}

/// Start data of a thread in free mode.
struct FreeStart {
    routine: usize,
    arg: usize,
    id: u32,
    parent: u32,
    ordinal: u32,
    stack_bytes: u64,
}

/// Default size of a thread's stack.
pub(crate) static STACK_BYTES: AtomicU64 = AtomicU64::new(8 << 20);

extern "C" fn create_inner(
    thread: *mut pthread_t,
    attr: *const pthread_attr_t,
    routine: usize,
    arg: usize,
) -> c_int {
    create(thread, attr, routine, arg, hook::caller())
}

pub(super) fn create(
    thread: *mut pthread_t,
    attr: *const pthread_attr_t,
    routine: usize,
    arg: usize,
    pc: u64,
) -> c_int {
    let start = |routine: Routine, arg: *mut c_void| real!(pthread_create(thread => *mut pthread_t, attr => *const pthread_attr_t, routine => Routine, arg => *mut c_void) -> c_int);
    let stack_bytes = stack_bytes(attr);
    if hook::free() {
        let parent = tls::thread().unwrap_or(0);
        let id = hook::free_reserve();
        let ordinal = shared::slot(parent).n_children.fetch_add(1, Ordering::Relaxed) + 1;
        let package = Box::new(FreeStart { routine, arg, id, parent, ordinal, stack_bytes });
        hook::record(Kind::Spawn, 0, u64::from(id), 0, pc, &[]);
        return start(raddle_thread_start, Box::into_raw(package).cast());
    }
    let Some(me) = hook::me() else {
        // SAFETY: the program's own start routine, of the type that libc wants.
        let routine: Routine = unsafe { core::mem::transmute(routine) };
        return start(routine, arg as *mut c_void);
    };
    hook::sync(me, pc, Wait::Nothing, NEVER);
    let id = {
        let mut sched = SCHED.lock();
        let id = sched.add_thread(me, (routine, arg));
        sched.threads[id as usize].mask = sched.threads[me as usize].mask;
        sched.note_spawn(me, id);
        id
    };
    let slot = shared::slot(id);
    slot.stack_low.store(stack_bytes, Ordering::Relaxed);
    hook::record(Kind::Spawn, 0, u64::from(id), 0, pc, &[]);
    let status = start(raddle_thread_start, id as usize as *mut c_void);
    if status != 0 {
        SCHED.lock().drop_thread(id);
        // The program may try again until other threads have ended.
        sched::yield_turn(me, pc);
        return status;
    }
    // Until it waits for its turn it runs beside us, and must do nothing visible.
    while slot.kernel_id.load(Ordering::Acquire) == 0 {
        sys::futex_wait(&slot.kernel_id, 0, Some(10_000_000), false);
    }
    affinity::create(id, me, attr);
    let mut sched = SCHED.lock();
    // SAFETY: libc has stored the new thread's name there.
    sched.threads[id as usize].pthread = unsafe { *thread };
    if is_detached(attr) {
        leave(&mut sched, id);
    } else if !allow::is_silent(Remark::Leak, pc) {
        slot.spawn_pc.store(pc, Ordering::Relaxed);
    }
    sched.make_live(id);
    sched.poke(me);
    0
}

/// Nobody will join the thread any more.
fn leave(sched: &mut Sched, id: u32) {
    sched.threads[id as usize].gone = true;
    shared::slot(id).is_gone.store(1, Ordering::Relaxed);
}

fn is_detached(attr: *const pthread_attr_t) -> bool {
    let mut state = 0;
    if !attr.is_null() {
        // SAFETY: the program's attributes, and where to put the answer.
        unsafe { pthread_attr_getdetachstate(attr, &raw mut state) };
    }
    state == libc::PTHREAD_CREATE_DETACHED
}

fn stack_bytes(attr: *const pthread_attr_t) -> u64 {
    let mut bytes = 0usize;
    if !attr.is_null() {
        // SAFETY: the program's attributes, and where to put the answer.
        unsafe { libc::pthread_attr_getstacksize(attr, &raw mut bytes) };
    }
    if bytes == 0 { STACK_BYTES.load(Ordering::Relaxed) } else { bytes as u64 }
}

/// Runs first in a new thread.
extern "C" fn begin(arg: *mut c_void) -> Start {
    // libc's descriptor of the thread is at the upper end of its stack.
    let high = tls::address();
    if shared::free() {
        // SAFETY: made by `create` for this thread alone.
        let package = unsafe { Box::from_raw(arg.cast::<FreeStart>()) };
        hook::free_begin_as(
            package.id,
            package.parent,
            package.ordinal,
            (high - package.stack_bytes, high),
        );
        key::call_at_end();
        super::signal::begin();
        return Start { routine: package.routine, arg: package.arg };
    }
    let me = arg as usize as u32;
    let bytes = shared::slot(me).stack_low.load(Ordering::Relaxed);
    super::signal::begin();
    let (routine, arg) = sched::begin(me, (high.saturating_sub(bytes), high));
    affinity::begin();
    key::call_at_end();
    Start { routine, arg }
}

/// Called by libc when a thread ends, repeatedly as long as we ask for it. The last round counts:
/// by then the destructors of the program's keys have run.
extern "C" fn end() {
    let rounds = tls::get(tls::ROUNDS) + 1;
    tls::set(tls::ROUNDS, rounds);
    if rounds < 4 {
        key::call_at_end();
        return;
    }
    if hook::free() {
        hook::record(Kind::End, 0, 0, 0, 0, &[]);
    } else if let Some(me) = hook::me() {
        mutex::owner_died(me);
        super::signal::end();
        affinity::end(me);
        sched::end(me);
    }
}

extern "C" fn join(thread: pthread_t, result: *mut *mut c_void) -> c_int {
    join_until(thread, result, NEVER, hook::caller())
}

extern "C" fn timed_join(
    thread: pthread_t,
    result: *mut *mut c_void,
    time: *const timespec,
) -> c_int {
    clock_join(thread, result, libc::CLOCK_REALTIME, time)
}

extern "C" fn clock_join(
    thread: pthread_t,
    result: *mut *mut c_void,
    clock: clockid_t,
    time: *const timespec,
) -> c_int {
    let pc = hook::caller();
    if hook::me().is_none() {
        return real!(pthread_clockjoin_np(thread => pthread_t, result => *mut *mut c_void, clock => clockid_t, time => *const timespec) -> c_int);
    }
    if time.is_null() {
        return join_until(thread, result, NEVER, pc);
    }
    if !clock::can_wait_by(clock) {
        return libc::EINVAL;
    }
    if clock::is_valid(time) {
        return join_until(thread, result, clock::deadline(clock, time), pc);
    }
    match join_until(thread, result, 0, pc) {
        libc::ETIMEDOUT => libc::EINVAL,
        status => status,
    }
}

pub(super) fn join_until(
    thread: pthread_t,
    result: *mut *mut c_void,
    deadline: u64,
    pc: u64,
) -> c_int {
    let real_join =
        || real!(pthread_join(thread => pthread_t, result => *mut *mut c_void) -> c_int);
    let Some(me) = hook::me() else {
        let status = real_join();
        return status;
    };
    let Some(other) = SCHED.lock().by_pthread(thread) else {
        return sched::outside(me, pc, real_join);
    };
    if other == me {
        return libc::EDEADLK;
    }
    match hook::sync(me, pc, Wait::Join(other), deadline) {
        Wake::TimedOut => return libc::ETIMEDOUT,
        Wake::Cancelled => return 0,
        _ => {}
    }
    leave(&mut SCHED.lock(), other);
    hook::record(Kind::Join, 0, u64::from(other), 0, pc, &[]);
    real_join()
}

extern "C" fn try_join(thread: pthread_t, result: *mut *mut c_void) -> c_int {
    let pc = hook::caller();
    let real_try =
        || real!(pthread_tryjoin_np(thread => pthread_t, result => *mut *mut c_void) -> c_int);
    let Some(me) = hook::me() else { return real_try() };
    hook::sync(me, pc, Wait::Nothing, NEVER);
    let other = SCHED.lock().by_pthread(thread);
    let status = real_try();
    if let (0, Some(other)) = (status, other) {
        leave(&mut SCHED.lock(), other);
        hook::record(Kind::Join, 0, u64::from(other), 0, pc, &[]);
    }
    status
}

pub(super) extern "C" fn detach(thread: pthread_t) -> c_int {
    let pc = hook::caller();
    if let Some(me) = hook::me() {
        hook::sync(me, pc, Wait::Nothing, NEVER);
        let mut sched = SCHED.lock();
        if let Some(other) = sched.by_pthread(thread) {
            leave(&mut sched, other);
            drop(sched);
            hook::record(Kind::Detach, 0, u64::from(other), 0, pc, &[]);
        }
    }
    real!(pthread_detach(thread => pthread_t) -> c_int)
}

extern "C" fn cancel(thread: pthread_t) -> c_int {
    let pc = hook::caller();
    let real_cancel = || real!(pthread_cancel(thread => pthread_t) -> c_int);
    let Some(me) = hook::me() else { return real_cancel() };
    hook::sync(me, pc, Wait::Nothing, NEVER);
    // libc first: a thread that acts on it asks libc.
    let status = real_cancel();
    let mut sched = SCHED.lock();
    let other = sched.threads.iter().rposition(|other| other.pthread == thread && !other.ended);
    if let Some(other) = other {
        sched.threads[other].cancelled = true;
    }
    act_at_once(&sched, me);
    sched.poke(me);
    status
}

/// With asynchronous cancellation, a thread acts on a pending cancellation as soon as it may.
fn act_at_once(sched: &Sched, me: u32) {
    if sched.threads[me as usize].is_cancelled_anywhere() {
        tls::set(tls::CANCEL, 1);
    }
}

extern "C" fn set_cancel_state(state: c_int, old: *mut c_int) -> c_int {
    let status = real!(pthread_setcancelstate(state => c_int, old => *mut c_int) -> c_int);
    if let (Some(me), 0) = (hook::me(), status) {
        let mut sched = SCHED.lock();
        sched.threads[me as usize].uncancellable = state == CANCEL_DISABLE;
        act_at_once(&sched, me);
    }
    status
}

/// Under control no signal may interrupt the runtime, so asynchronous cancellation is ours: it
/// happens at the thread's next step.
extern "C" fn set_cancel_type(kind: c_int, old: *mut c_int) -> c_int {
    let Some(me) = hook::me() else {
        return real!(pthread_setcanceltype(kind => c_int, old => *mut c_int) -> c_int);
    };
    let anywhere = match kind {
        CANCEL_ASYNCHRONOUS => true,
        CANCEL_DEFERRED => false,
        _ => return libc::EINVAL,
    };
    let mut sched = SCHED.lock();
    let before = core::mem::replace(&mut sched.threads[me as usize].cancel_anywhere, anywhere);
    act_at_once(&sched, me);
    drop(sched);
    if !old.is_null() {
        let before = if before { CANCEL_ASYNCHRONOUS } else { CANCEL_DEFERRED };
        // SAFETY: the program passes where to put it.
        unsafe { *old = before };
    }
    0
}

extern "C" fn test_cancel() {
    let pc = hook::caller();
    if let Some(me) = hook::me() {
        hook::sync(me, pc, Wait::Nothing, NEVER);
        sched::cancel_point(me);
    } else {
        tls::set(tls::CANCEL, 1);
    }
}

extern "C" fn set_name(thread: pthread_t, name: *const c_char) -> c_int {
    if let Some(me) = hook::me() {
        let sched = SCHED.lock();
        // SAFETY: the calling thread's own name.
        let own = thread == unsafe { libc::pthread_self() };
        if let Some(id) = if own { Some(me) } else { sched.by_pthread(thread) } {
            for (at, to) in shared::slot(id).name.iter().enumerate().take(15) {
                // SAFETY: a zero-terminated string, read up to its end.
                let byte = unsafe { *name.add(at) } as u8;
                to.store(byte, Ordering::Relaxed);
                if byte == 0 {
                    break;
                }
            }
        }
    }
    real!(pthread_setname_np(thread => pthread_t, name => *const c_char) -> c_int)
}
