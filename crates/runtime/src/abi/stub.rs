//! Frames that the target's code may unwind through, or that must leave no frame at all.
//!
//! `pthread_exit`, cancellation and C++ exceptions unwind the stack from below us. Rust
//! forbids that for its own frames, so whatever calls into the target is assembly with
//! unwind information, and a thread is cancelled only on the way out of an interposed
//! function, when none of our frames is left.

use core::arch::{global_asm, naked_asm};
use core::sync::atomic::AtomicUsize;

use crate::hook;

/// The address of libc's `pthread_testcancel`, set at start.
pub(crate) static TESTCANCEL: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    /// Start routine of every thread: begins, runs the program's routine, returns its result.
    pub(crate) fn raddle_thread_start(arg: *mut core::ffi::c_void) -> *mut core::ffi::c_void;
    /// Calls an initialization routine between two calls of ours.
    pub(crate) fn raddle_once(control: *mut i32, routine: usize, real: usize) -> i32;
    /// In place of `main`.
    pub(crate) fn raddle_main(argc: i32, argv: *mut *mut i8, env: *mut *mut i8) -> i32;
    /// On the way out of a cancellation point.
    pub(crate) fn raddle_cancel();
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
    ".hidden raddle_main",
    ".globl raddle_main",
    ".type raddle_main,@function",
    "raddle_main:",
    ".cfi_startproc",
    "sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "call qword ptr [rip + {main}]",
    "mov edi, eax",
    "call {after_main}",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_endproc",
    ".size raddle_main, . - raddle_main",
    ".hidden raddle_cancel",
    ".globl raddle_cancel",
    ".type raddle_cancel,@function",
    "raddle_cancel:",
    ".cfi_startproc",
    "push rax",
    ".cfi_adjust_cfa_offset 8",
    "mov r10, qword ptr [rip + raddle_tls@GOTTPOFF]",
    "mov qword ptr fs:[r10 + {cancel}], 0",
    "call qword ptr [rip + {testcancel}]",
    "pop rax",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_endproc",
    ".size raddle_cancel, . - raddle_cancel",
    begin = sym crate::interpose::thread::begin,
    after_once = sym crate::interpose::once::after,
    main = sym crate::start::MAIN,
    after_main = sym crate::start::after_main,
    testcancel = sym TESTCANCEL,
    cancel = const crate::tls::CANCEL,
);

/// [`hook::slow_access`], and behind it the end of a thread that is cancelled anywhere.
#[unsafe(naked)]
pub(crate) extern "C" fn slow_access() {
    naked_asm!(
        "sub rsp, 8",
        "call {slow}",
        "add rsp, 8",
        "mov rax, qword ptr [rip + raddle_tls@GOTTPOFF]",
        "cmp qword ptr fs:[rax + {cancel}], 0",
        "jne {cancelled}",
        "ret",
        slow = sym hook::slow_access,
        cancel = const crate::tls::CANCEL,
        cancelled = sym raddle_cancel,
    )
}

/// Exports functions under names of libc. Each notes its return address and goes on in a
/// function of ours.
macro_rules! export {
    ($($name:ident => $inner:path;)*) => {$(
        /// See the function that it goes on in.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            core::arch::naked_asm!(
                "mov r10, qword ptr [rip + raddle_tls@GOTTPOFF]",
                "mov r11, qword ptr [rsp]",
                "mov qword ptr fs:[r10 + {caller}], r11",
                "jmp {inner}",
                caller = const $crate::tls::CALLER,
                inner = sym $inner,
            )
        }
    )*};
}
pub(crate) use export;

/// As [`export!`], for cancellation points.
macro_rules! export_cancellable {
    ($($name:ident => $inner:path;)*) => {$(
        /// See the function that it goes on in.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            core::arch::naked_asm!(
                "mov r10, qword ptr [rip + raddle_tls@GOTTPOFF]",
                "mov r11, qword ptr [rsp]",
                "mov qword ptr fs:[r10 + {caller}], r11",
                "sub rsp, 8",
                "call {inner}",
                "add rsp, 8",
                "mov r10, qword ptr [rip + raddle_tls@GOTTPOFF]",
                "cmp qword ptr fs:[r10 + {cancel}], 0",
                "jne {cancelled}",
                "ret",
                caller = const $crate::tls::CALLER,
                cancel = const $crate::tls::CANCEL,
                inner = sym $inner,
                cancelled = sym $crate::abi::stub::raddle_cancel,
            )
        }
    )*};
}
pub(crate) use export_cancellable;
