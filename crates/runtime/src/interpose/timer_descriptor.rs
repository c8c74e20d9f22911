//! Timer descriptors, in virtual time: see [`crate::sched::timer`].
//!
//! A timer belongs to the number that `timerfd_create` returned. Setting it through a duplicate of
//! that descriptor sets the kernel's timer, which runs in real time.

use libc::{c_int, clockid_t, itimerspec};

use super::{channel, fail, timer};
use crate::export::export;
use crate::hook;
use crate::real::real;
use crate::sched::SCHED;
use crate::sched::timer::{Action, Timer};

export! {
    timerfd_create => create;
    timerfd_settime => set;
    timerfd_gettime => get;
}

/// Our id of a descriptor's timer: even, and above those of the process.
fn id(descriptor: c_int) -> u64 {
    1 << 32 | (descriptor as u32 as u64) << 1
}

fn ours(descriptor: c_int) -> Option<Timer> {
    hook::me()?;
    SCHED.lock().timers.get(id(descriptor))
}

extern "C" fn create(clock: clockid_t, flags: c_int) -> c_int {
    let descriptor = real!(timerfd_create(clock => clockid_t, flags => c_int) -> c_int);
    if descriptor >= 0 && hook::me().is_some() {
        // It replaces the timer of a descriptor that had this number and was closed.
        let timer = Timer::new(id(descriptor), clock, Action::Descriptor(descriptor));
        SCHED.lock().timers.set(timer);
    }
    descriptor
}

extern "C" fn set(
    descriptor: c_int,
    flags: c_int,
    new: *const itimerspec,
    old: *mut itimerspec,
) -> c_int {
    let real_set = |new: *const itimerspec, old: *mut itimerspec| real!(timerfd_settime(descriptor => c_int, flags => c_int, new => *const itimerspec, old => *mut itimerspec) -> c_int);
    channel::send(descriptor, false, hook::caller());
    let Some(known) = ours(descriptor) else { return real_set(new, old) };
    // SAFETY: the program's description.
    let new = unsafe { &*new };
    if !timer::is_valid(new) {
        return fail(libc::EINVAL);
    }
    // The kernel checks the rest, and forgets expirations that were not read.
    let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let off = itimerspec { it_interval: zero, it_value: zero };
    let status = real_set(&raw const off, core::ptr::null_mut());
    if status == 0 {
        let before = timer::left(Some(known));
        timer::set_to(known, flags & libc::TFD_TIMER_ABSTIME != 0, new);
        timer::put(before, old);
    }
    status
}

extern "C" fn get(descriptor: c_int, into: *mut itimerspec) -> c_int {
    let status = real!(timerfd_gettime(descriptor => c_int, into => *mut itimerspec) -> c_int);
    if let (0, Some(known)) = (status, ours(descriptor)) {
        timer::put(timer::left(Some(known)), into);
    }
    status
}
