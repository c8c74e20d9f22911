//! One-time initialization: `pthread_once`, and the guards of C++ statics.

use core::arch::{global_asm, naked_asm};

use libc::c_int;
use raddle_trace::record::Kind;

use crate::export::export;
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

unsafe extern "C" {
    /// Calls an initialization routine between two calls of ours.
    fn raddle_once(control: *mut c_int, routine: usize, real: usize) -> c_int;
}

global_asm!(
    ".text",
    ".hidden raddle_once",
    ".globl raddle_once",
    ".type raddle_once,@function",
    "raddle_once:",
    ".cfi_startproc",
    "push rbx",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset rbx, 0",
    "mov rbx, rdi",
    "call rdx",
    "mov rdi, rbx",
    "mov rbx, rax",
    "call {after_once}",
    "mov rax, rbx",
    "pop rbx",
    ".cfi_adjust_cfa_offset -8",
    ".cfi_restore rbx",
    "ret",
    ".cfi_endproc",
    ".size raddle_once, . - raddle_once",
    after_once = sym after,
);

#[unsafe(link_section = "raddle_real")]
static REAL_ONCE: Real = Real::new(c"pthread_once", None);

/// What to do next: 0 to return, otherwise the address of libc's function.
#[repr(C)]
struct NextCall {
    real: usize,
}

/// The routine may throw or be cancelled, so no frame of ours may be below it: we decide first,
/// and [`raddle_once`] makes the call.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub(crate) extern "C" fn pthread_once() {
    naked_asm!(
        ".cfi_startproc",
        "mov r10, qword ptr [rip + raddle_tls@GOTTPOFF]",
        "mov r11, qword ptr [rsp]",
        "mov qword ptr fs:[r10 + {caller}], r11",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 24",
        "call {before}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        ".cfi_adjust_cfa_offset -24",
        "test rax, rax",
        "je 2f",
        "mov rdx, rax",
        "jmp {once}",
        "2:",
        "ret",
        ".cfi_endproc",
        caller = const tls::CALLER,
        before = sym before,
        once = sym raddle_once,
    )
}

/// The C11 variant, which returns nothing.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub(crate) extern "C" fn call_once() {
    naked_asm!("jmp {inner}", inner = sym pthread_once)
}

/// glibc's value of a control word after initialization.
const DONE: c_int = 2;

extern "C" fn before(control: *mut c_int, _: usize) -> NextCall {
    let pc = hook::caller();
    let real = REAL_ONCE.address();
    if let Some(me) = hook::me() {
        hook::about_to(me, control as u64, true);
        hook::sync(me, pc, Wait::Once(control as u64), NEVER);
    }
    // SAFETY: the program's control word.
    if unsafe { *control } == DONE {
        hook::record(Kind::OncePass, 0, control as u64, 0, pc, &[]);
        return NextCall { real: 0 };
    }
    hook::record(Kind::OnceBegin, 0, control as u64, 0, pc, &[]);
    NextCall { real }
}

/// Called after the routine has returned.
extern "C" fn after(control: *mut c_int) {
    if let Some(me) = hook::me() {
        SCHED.lock().poke(me);
    }
    hook::record(Kind::OnceEnd, 0, control as u64, 0, 0, &[]);
}

/// The Itanium C++ ABI leaves a guard's bytes to the library: the first means «done», and as in
/// libstdc++ the second means «in progress».
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
