//! What signal handlers must not do: change `errno`, and call functions that are not
//! async-signal-safe. Neither ends a run; the parent makes notes of them ([`Remark`]).
//!
//! **`errno`.** It is compared before and after the handler. As in ThreadSanitizer, that is left out
//! for signals that the thread caused itself (faults, `SIGPIPE`, `raise`, `kill` of its own
//! process): the code that they interrupt expects a call there. It is left out for `SIGTERM` too,
//! whose handlers often end the program. ThreadSanitizer sets `errno` to a value of its own before
//! the handler and restores it afterward. We leave `errno` to the program: a handler that stores the
//! value that was there goes unnoticed, and one that spoils it can make the program fail.
//!
//! **Unsafe calls.** ThreadSanitizer knows only the allocator: it reports calls of it in every
//! handler, also in those of faults and of signals that the thread sent itself, though POSIX lets
//! such a handler call what it wants if the signal interrupted no unsafe function. We do the same
//! for the allocator. The other functions of signal-safety(7) that we replace, such as those of
//! stdio and of locks, are judged only if the signal could have come at any moment. Unlocking is not:
//! it is the locking that is wrong. A call that the
//! allocator gets from libc counts for the handler, unless a call that the handler made before
//! explains it, as that of `printf` does.
//!
//! Signals are deferred to the thread's next step, so a handler never runs inside a function that
//! it then calls. That changes nothing here: what counts is that it calls, not what it interrupts.
//!
//! **Cost.** Outside handlers, a replaced function that is unsafe pays two instructions in its
//! trampoline ([`crate::export`]): a comparison of [`tls::HANDLER`] with 0, and a branch.
//!
//! **Leaving by a jump.** A handler may never return (`siglongjmp`, `pthread_exit`). The word that
//! says that it runs is the address of a frame on its stack. Once the stack pointer is above that,
//! or on another stack, the handler is over.

use core::arch::global_asm;
use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::Ordering;

use raddle_trace::control::RemarkSlot;
use raddle_trace::remark::Remark;

use crate::{allow, modules, shared, sys, tls};

/// How a signal came to its handler.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The thread caused it by what it did.
    Synchronous,
    /// At a moment that the thread did not choose.
    Asynchronous,
}

/// A handler that runs. It lives on the handler's stack, above the handler's own frame.
#[repr(align(16))]
struct Frame {
    /// The handler's code address, as if it were the return address of a call there.
    pc: u64,
    signal: c_int,
    arrival: Arrival,
    /// Whether the program itself made an unsafe call in it.
    has_called: Cell<bool>,
}

/// The bit of [`tls::HANDLER`] that says that the frame is on the thread's alternate signal stack.
const ON_ALTERNATE: u64 = 1;

/// Calls the program's handler, and looks at what it does.
pub(crate) fn run(
    handler: usize,
    signal: c_int,
    code: c_int,
    arrival: Arrival,
    call: impl FnOnce(),
) {
    if !shared::controlled() {
        return call();
    }
    let arrival = if reports_own_act(signal, code) { Arrival::Synchronous } else { arrival };
    let frame = Frame { pc: handler as u64 + 1, signal, arrival, has_called: Cell::new(false) };
    let before = tls::get(tls::HANDLER);
    let alternate = if on_alternate_stack() { ON_ALTERNATE } else { 0 };
    tls::set(tls::HANDLER, core::ptr::from_ref(&frame) as u64 | alternate);
    let errno = errno();
    call();
    tls::set(tls::HANDLER, before);
    let is_judged = arrival == Arrival::Asynchronous && signal != libc::SIGTERM;
    if is_judged && self::errno() != errno && shared::controlled() {
        note(Remark::HandlerErrno, frame.pc, &frame, c"");
    }
}

/// Whether a signal tells a thread what it did itself. A timer may send any signal.
fn reports_own_act(signal: c_int, code: c_int) -> bool {
    const OWN: [c_int; 8] = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGABRT,
        libc::SIGFPE,
        libc::SIGPIPE,
        libc::SIGSYS,
    ];
    code != libc::SI_TIMER && OWN.contains(&signal)
}

fn errno() -> c_int {
    unsafe extern "C" {
        fn __errno_location() -> *mut c_int;
    }
    // SAFETY: libc's thread-local variable.
    unsafe { *__errno_location() }
}

fn on_alternate_stack() -> bool {
    let mut stack = libc::stack_t { ss_sp: core::ptr::null_mut(), ss_flags: 0, ss_size: 0 };
    sys::syscall!(libc::SYS_sigaltstack, 0, &raw mut stack);
    stack.ss_flags & libc::SS_ONSTACK != 0
}

/// The number of a class of functions that handlers must not call, as the assembler wants it.
macro_rules! class {
    // Any handler must not: the function uses the heap.
    (HEAP) => {
        "0"
    };
    // Handlers of signals that may come at any moment must not.
    (OTHER) => {
        "1"
    };
}
pub(crate) use class;

/// The first of them.
const HEAP: u64 = 0;

// Trampolines call this while a handler runs, with the name of their function in r11 and its class in
// r10. It keeps all registers that arguments are passed in.
global_asm!(
    ".text",
    ".hidden raddle_unsafe_call",
    ".globl raddle_unsafe_call",
    ".type raddle_unsafe_call,@function",
    "raddle_unsafe_call:",
    ".cfi_startproc",
    "sub rsp, 192",
    ".cfi_adjust_cfa_offset 192",
    "movaps xmmword ptr [rsp], xmm0",
    "movaps xmmword ptr [rsp + 16], xmm1",
    "movaps xmmword ptr [rsp + 32], xmm2",
    "movaps xmmword ptr [rsp + 48], xmm3",
    "movaps xmmword ptr [rsp + 64], xmm4",
    "movaps xmmword ptr [rsp + 80], xmm5",
    "movaps xmmword ptr [rsp + 96], xmm6",
    "movaps xmmword ptr [rsp + 112], xmm7",
    "mov qword ptr [rsp + 128], rdi",
    "mov qword ptr [rsp + 136], rsi",
    "mov qword ptr [rsp + 144], rdx",
    "mov qword ptr [rsp + 152], rcx",
    "mov qword ptr [rsp + 160], r8",
    "mov qword ptr [rsp + 168], r9",
    // The number of vector registers, if there is a variable number of arguments.
    "mov qword ptr [rsp + 176], rax",
    "mov rdi, r11",
    "mov rsi, r10",
    "call {unsafe_call}",
    "movaps xmm0, xmmword ptr [rsp]",
    "movaps xmm1, xmmword ptr [rsp + 16]",
    "movaps xmm2, xmmword ptr [rsp + 32]",
    "movaps xmm3, xmmword ptr [rsp + 48]",
    "movaps xmm4, xmmword ptr [rsp + 64]",
    "movaps xmm5, xmmword ptr [rsp + 80]",
    "movaps xmm6, xmmword ptr [rsp + 96]",
    "movaps xmm7, xmmword ptr [rsp + 112]",
    "mov rdi, qword ptr [rsp + 128]",
    "mov rsi, qword ptr [rsp + 136]",
    "mov rdx, qword ptr [rsp + 144]",
    "mov rcx, qword ptr [rsp + 152]",
    "mov r8, qword ptr [rsp + 160]",
    "mov r9, qword ptr [rsp + 168]",
    "mov rax, qword ptr [rsp + 176]",
    "add rsp, 192",
    ".cfi_adjust_cfa_offset -192",
    "ret",
    ".cfi_endproc",
    ".size raddle_unsafe_call, . - raddle_unsafe_call",
    unsafe_call = sym unsafe_call,
);

/// An unsafe function is called while a handler may be running.
extern "C" fn unsafe_call(name: *const c_char, class: u64) {
    // Looking up libc's functions allocates, and is our own doing.
    if !shared::controlled() || tls::get(tls::QUIET) != 0 {
        return;
    }
    let Some(frame) = running() else {
        tls::set(tls::HANDLER, 0);
        return;
    };
    let new_caller = tls::get(tls::NEW_CALLER);
    let caller = if new_caller == 0 { tls::get(tls::CALLER) } else { new_caller };
    let is_direct = modules::from_program(caller);
    let is_judged = class == HEAP || frame.arrival == Arrival::Asynchronous;
    if !is_judged || modules::in_runtime(caller) || !is_direct && frame.has_called.get() {
        return;
    }
    frame.has_called.set(true);
    // SAFETY: a trampoline passes the name of its function.
    let name = unsafe { CStr::from_ptr(name) };
    note(Remark::HandlerUnsafe, if is_direct { caller } else { frame.pc }, frame, name);
}

/// The innermost handler that runs.
fn running<'a>() -> Option<&'a Frame> {
    let word = tls::get(tls::HANDLER);
    let frame = word & !ON_ALTERNATE;
    let here = core::ptr::from_ref(&word) as u64;
    let is_over = here >= frame || on_alternate_stack() != (word & ON_ALTERNATE != 0);
    // SAFETY: `run` has not returned, since the stack pointer is below its frame on the same stack.
    (!is_over).then(|| unsafe { &*(frame as *const Frame) })
}

/// Counts a remark for the parent.
#[cold]
fn note(remark: Remark, pc: u64, frame: &Frame, call: &CStr) {
    if allow::is_silent(remark, pc) {
        return;
    }
    let control = shared::control();
    let key = RemarkSlot::key_of(remark, frame.signal as u8, pc);
    for slot in &control.remarks {
        let claim = slot.key.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed);
        match claim {
            Ok(_) => {
                slot.handler.store(frame.pc, Ordering::Relaxed);
                for (to, from) in slot.call.iter().zip(call.to_bytes()) {
                    to.store(*from, Ordering::Relaxed);
                }
            }
            Err(taken) if taken == key => {}
            Err(_) => continue,
        }
        slot.n.fetch_add(1, Ordering::Relaxed);
        return;
    }
    control.n_remarks_lost.fetch_add(1, Ordering::Relaxed);
}
