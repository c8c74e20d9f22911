//! Timers that start threads (`SIGEV_THREAD`), in virtual time.
//!
//! As in glibc, one thread waits for all of them, and starts a new detached thread for each
//! expiration, with the attributes that the program has given. It blocks all signals, and so do
//! the threads that it starts. Expirations that come before it has looked at the last one are
//! merged and counted.

use alloc::vec::Vec;
use core::ffi::c_void;
use core::sync::atomic::Ordering;

use libc::{c_int, pthread_attr_t, pthread_t, sigevent};
use raddle_trace::record::Kind;

use super::thread;
use crate::guarded::Guarded;
use crate::sched::SCHED;
use crate::sched::thread::{NEVER, Wait};
use crate::{hook, shared, sys, tls};

unsafe extern "C" {
    fn pthread_attr_init(attr: *mut pthread_attr_t) -> c_int;
    fn pthread_attr_setdetachstate(attr: *mut pthread_attr_t, state: c_int) -> c_int;
}

/// What to start when a timer expires.
#[derive(Clone, Copy)]
struct Notice {
    timer: u64,
    function: usize,
    value: usize,
    attributes: pthread_attr_t,
}

/// The notices of all timers that start threads, and whether the thread that waits for them runs.
struct Notices {
    list: Vec<Notice>,
    is_served: bool,
}

static NOTICES: Guarded<Notices> = Guarded::new(Notices { list: Vec::new(), is_served: false });

/// The part of [`sigevent`] that says what to call.
#[repr(C)]
struct Call {
    value: usize,
    signal: c_int,
    notify: c_int,
    function: usize,
    attributes: *const pthread_attr_t,
}

const _: () = assert!(size_of::<Call>() <= size_of::<sigevent>());

/// Remembers what the program wants to happen when a timer expires. Returns 0 or an error.
pub(super) fn add(me: u32, timer: u64, event: *const sigevent, pc: u64) -> c_int {
    let is_served = core::mem::replace(&mut NOTICES.lock().is_served, true);
    if !is_served {
        let error = serve(me, pc);
        if error != 0 {
            NOTICES.lock().is_served = false;
            return error;
        }
    }
    // SAFETY: the program's description, which has this form for such timers.
    let call = unsafe { &*event.cast::<Call>() };
    let attributes = detached(call.attributes);
    let notice = Notice { timer, function: call.function, value: call.value, attributes };
    NOTICES.lock().list.push(notice);
    0
}

/// Forgets a timer.
pub(super) fn remove(timer: u64) {
    NOTICES.lock().list.retain(|notice| notice.timer != timer);
}

/// The program's attributes as glibc takes them over: without affinity, and detached.
fn detached(given: *const pthread_attr_t) -> pthread_attr_t {
    /// glibc's pointer to less common attributes follows the size of the stack.
    const EXTENSION: usize = 5;
    // SAFETY: all zeros can be initialized.
    let mut attributes: pthread_attr_t = unsafe { core::mem::zeroed() };
    // SAFETY: attributes of our own.
    unsafe { pthread_attr_init(&raw mut attributes) };
    if !given.is_null() {
        // SAFETY: the program's attributes.
        attributes = unsafe { *given };
        // SAFETY: within the attributes, which are eight-byte words.
        unsafe { *(&raw mut attributes).cast::<u64>().add(EXTENSION) = 0 };
    }
    // SAFETY: valid attributes of our own.
    unsafe {
        pthread_attr_setdetachstate(&raw mut attributes, libc::PTHREAD_CREATE_DETACHED);
    }
    attributes
}

/// Starts the thread that waits for timers. Returns 0 or an error.
fn serve(me: u32, pc: u64) -> c_int {
    let (all, mut before) = (u64::MAX, 0u64);
    let attributes = detached(core::ptr::null());
    let mut server: pthread_t = 0;
    // Before it blocks signals: they are not for a thread that the program does not know.
    sys::syscall!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const all, &raw mut before, 8);
    let routine = wait_for_timers as *const () as usize;
    let error = thread::create(&raw mut server, &raw const attributes, routine, 0, pc);
    sys::syscall!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const before, 0, 8);
    if error != 0 {
        return error;
    }
    let mut sched = SCHED.lock();
    let is_it = |thread: &crate::sched::thread::Thread| thread.pthread == server && !thread.ended;
    let Some(id) = sched.threads.iter().rposition(is_it) else {
        die!("internal bug: the thread for timers, started by {me}, is unknown")
    };
    sched.threads[id].mask = all;
    for (to, &byte) in shared::slot(id as u32).name.iter().zip(b"timers") {
        to.store(byte, Ordering::Relaxed);
    }
    0
}

/// The thread that waits for timers.
extern "C" fn wait_for_timers(_: *mut c_void) -> *mut c_void {
    let Some(me) = tls::thread() else { die!("internal bug: the thread for timers is unknown") };
    loop {
        hook::sync(me, 0, Wait::Timer, NEVER);
        let expired = SCHED.lock().take_expired();
        for timer in expired {
            let notices = NOTICES.lock();
            let notice = notices.list.iter().copied().find(|notice| notice.timer == timer);
            drop(notices);
            let Some(Notice { function, value, attributes, .. }) = notice else { continue };
            hook::record(Kind::After, 0, timer, 0, 0, &[]);
            let mut started: pthread_t = 0;
            // As in glibc, an expiration for which no thread can be started is lost.
            thread::create(&raw mut started, &raw const attributes, function, value, 0);
        }
    }
}

/// A timer is set: what the program did before is ordered before its thread.
pub(super) fn note_set(timer: u64, pc: u64) {
    hook::record(Kind::Before, 0, timer, 0, pc, &[]);
}
