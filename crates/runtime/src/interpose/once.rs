//! One-time initialization: `pthread_once`, and the guards of C++ statics.

use core::arch::naked_asm;

use libc::c_int;
use raddle_trace::record::Kind;

use crate::abi::stub::{export, raddle_once};
use crate::hook;
use crate::real::Real;
use crate::sched::SCHED;
use crate::sched::thread::{NEVER, Wait};
use crate::tls;

export! {
    __cxa_guard_acquire => guard_acquire;
    __cxa_guard_release => guard_release;
    __cxa_guard_abort => guard_abort;
}

static REAL_ONCE: Real = Real::new(c"pthread_once", None);

/// What to do next: 0 return, otherwise the address of libc's function.
#[repr(C)]
struct Go {
    real: usize,
}

/// The routine may throw or be cancelled, so no frame of ours may be below it: we are asked
/// first, and [`raddle_once`] makes the call.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub(crate) extern "C" fn pthread_once() {
    naked_asm!(
        "mov r10, qword ptr [rip + raddle_tls@GOTTPOFF]",
        "mov r11, qword ptr [rsp]",
        "mov qword ptr fs:[r10 + {caller}], r11",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {before}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "je 2f",
        "mov rdx, rax",
        "jmp {once}",
        "2:",
        "ret",
        caller = const tls::CALLER,
        before = sym before,
        once = sym raddle_once,
    )
}

/// The same, as C11 calls it: no result.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub(crate) extern "C" fn call_once() {
    naked_asm!("jmp {inner}", inner = sym pthread_once)
}

/// glibc's value of a control word whose initialization is done.
const DONE: c_int = 2;

extern "C" fn before(control: *mut c_int, _: usize) -> Go {
    let pc = hook::caller();
    let real = REAL_ONCE.address();
    if let Some(me) = hook::me() {
        hook::about_to(me, control as u64, true);
        hook::sync(me, pc, Wait::Once(control as u64), NEVER);
    }
    // SAFETY: the program's control word.
    if unsafe { *control } == DONE {
        hook::record(Kind::OncePass, 0, control as u64, 0, pc, &[]);
        return Go { real: 0 };
    }
    hook::record(Kind::OnceBegin, 0, control as u64, 0, pc, &[]);
    Go { real }
}

/// The routine has returned.
pub(crate) extern "C" fn after(control: *mut c_int) {
    if let Some(me) = hook::me() {
        SCHED.lock().poke(me);
    }
    hook::record(Kind::OnceEnd, 0, control as u64, 0, 0, &[]);
}

/// The Itanium C++ ABI leaves a guard's bytes to the library: the first says «done», and as
/// libstdc++ the second says «in progress».
extern "C" fn guard_acquire(guard: *mut u8) -> c_int {
    let pc = hook::caller();
    if let Some(me) = hook::me() {
        hook::about_to(me, guard as u64, true);
        hook::sync(me, pc, Wait::Guard(guard as u64), NEVER);
    } else {
        // SAFETY: the program's guard; other threads may be at it.
        let word = unsafe { core::sync::atomic::AtomicU8::from_ptr(guard.add(1)) };
        // SAFETY: as above.
        let done = unsafe { core::sync::atomic::AtomicU8::from_ptr(guard) };
        loop {
            if done.load(core::sync::atomic::Ordering::Acquire) != 0 {
                hook::record(Kind::OncePass, 0, guard as u64, 0, pc, &[]);
                return 0;
            }
            if word.swap(1, core::sync::atomic::Ordering::AcqRel) == 0 {
                if done.load(core::sync::atomic::Ordering::Acquire) != 0 {
                    word.store(0, core::sync::atomic::Ordering::Release);
                    continue;
                }
                hook::record(Kind::OnceBegin, 0, guard as u64, 0, pc, &[]);
                return 1;
            }
            crate::sys::sched_yield();
        }
    }
    // SAFETY: the program's guard; we have the turn.
    if unsafe { *guard } != 0 {
        hook::record(Kind::OncePass, 0, guard as u64, 0, pc, &[]);
        return 0;
    }
    // SAFETY: as above.
    unsafe { *guard.add(1) = 1 };
    hook::record(Kind::OnceBegin, 0, guard as u64, 0, pc, &[]);
    1
}

fn guard_end(guard: *mut u8, done: bool) {
    let pc = hook::caller();
    if let Some(me) = hook::me() {
        hook::sync(me, pc, Wait::Nothing, NEVER);
        SCHED.lock().poke(me);
    }
    hook::record(Kind::OnceEnd, u8::from(!done), guard as u64, 0, pc, &[]);
    if done {
        // SAFETY: the program's guard, whose initialization is ours.
        unsafe { core::sync::atomic::AtomicU8::from_ptr(guard) }
            .store(1, core::sync::atomic::Ordering::Release);
    }
    // SAFETY: as above.
    unsafe { core::sync::atomic::AtomicU8::from_ptr(guard.add(1)) }
        .store(0, core::sync::atomic::Ordering::Release);
}

extern "C" fn guard_release(guard: *mut u8) {
    guard_end(guard, true);
}

extern "C" fn guard_abort(guard: *mut u8) {
    guard_end(guard, false);
}
