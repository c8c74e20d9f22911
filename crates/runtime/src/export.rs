//! Exports functions under the names that the target calls.
//!
//! `pthread_exit`, cancellation and C++ exceptions unwind the stack below us. Rust forbids that
//! for its own frames, so whatever calls into the target is assembly with unwind information, and
//! a thread is cancelled only on the way out of an interposed function, when none of our frames
//! is left.

use core::arch::global_asm;
use core::sync::atomic::AtomicUsize;

/// The address of libc's `pthread_testcancel`, set at start.
pub(crate) static TESTCANCEL: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    /// Called on the way out of a cancellation point.
    pub(crate) fn raddle_cancel();
}

global_asm!(
    ".text",
    ".hidden raddle_cancel",
    ".globl raddle_cancel",
    ".type raddle_cancel,@function",
    "raddle_cancel:",
    ".cfi_startproc",
    // The result, which may be two registers wide.
    "push rax",
    ".cfi_adjust_cfa_offset 8",
    "push rdx",
    ".cfi_adjust_cfa_offset 8",
    "sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "call {begin}",
    "call qword ptr [rip + {testcancel}]",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "pop rdx",
    ".cfi_adjust_cfa_offset -8",
    "pop rax",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_endproc",
    ".size raddle_cancel, . - raddle_cancel",
    testcancel = sym TESTCANCEL,
    begin = sym crate::sched::begin_cancellation,
);

/// Instructions of a trampoline whose function signal handlers must not call, for where `r10` holds
/// the place of the thread-local words: two while no handler runs. None for other functions.
macro_rules! if_in_handler {
    (SAFE) => {
        ""
    };
    ($class:ident) => {
        concat!("cmp qword ptr fs:[r10 + ", $crate::tls::handler_word!(), "], 0\njne 7f\n8:")
    };
}
pub(crate) use if_in_handler;

/// The rest of them, out of the way.
macro_rules! then_look {
    (SAFE $name:ident) => {
        ""
    };
    ($class:ident $name:ident) => {
        concat!(
            "7: lea r11, [rip + 9f]\n",
            "mov r10d, ",
            $crate::handler::class!($class),
            "\ncall raddle_unsafe_call\njmp 8b\n",
            ".pushsection .rodata.raddle_names, \"a\", @progbits\n9: .asciz \"",
            stringify!($name),
            "\"\n.popsection"
        )
    };
}
pub(crate) use then_look;

/// Exports functions under names of libc. Each stores its return address and continues in a
/// function of ours. The functions of a list that begins with `unsafe CLASS:` are not
/// async-signal-safe (see [`crate::handler`]); that holds for all of these macros.
macro_rules! export {
    (unsafe $class:ident: $($name:ident => $inner:path;)*) => {$(
        $crate::export::export!(@one $class $name $inner);
    )*};
    ($($name:ident => $inner:path;)*) => {$(
        $crate::export::export!(@one SAFE $name $inner);
    )*};
    (@one $class:ident $name:ident $inner:path) => {
        /// See the inner function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            core::arch::naked_asm!(
                "mov r10, qword ptr [rip + raddle_tls@GOTTPOFF]",
                "mov r11, qword ptr [rsp]",
                "mov qword ptr fs:[r10 + {caller}], r11",
                $crate::export::if_in_handler!($class),
                "jmp {inner}",
                $crate::export::then_look!($class $name),
                caller = const $crate::tls::CALLER,
                inner = sym $inner,
            )
        }
    };
}
pub(crate) use export;

/// As [`export!`], for cancellation points, and for whatever a thread with asynchronous cancellation
/// may repeat forever. A seventh argument, on the stack, is passed on. Without control, as in a child
/// process, libc's function runs as if it had been called directly, and cancels by itself.
///
/// A signal handler that runs meanwhile may leave the function for good, by `pthread_exit` or an
/// exception. With `left by`, the unwinder then calls a function of ours, of the type of
/// a personality routine.
macro_rules! export_cancellable {
    (unsafe $class:ident: $($name:ident => $inner:path $(, left by $left:path)?;)*) => {$(
        $crate::export::export_cancellable!(@one $class $name $inner $(, left by $left)?);
    )*};
    ($($name:ident => $inner:path $(, left by $left:path)?;)*) => {$(
        $crate::export::export_cancellable!(@one SAFE $name $inner $(, left by $left)?);
    )*};
    (@one $class:ident $name:ident $inner:path $(, left by $left:path)?) => {
        #[allow(non_snake_case, reason = "it has the function's name")]
        mod $name {
            /// libc's function. Of condition variables it has two generations; the first version of
            /// the current one is that of these.
            pub(super) extern "C" fn real() -> usize {
                $crate::real::address!($name @ c"GLIBC_2.3.2")
            }
        }

        /// See the inner function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                // Relative to the code, in four bytes.
                $(concat!(".cfi_personality 0x1b, {left} # ", stringify!($left)),)?
                "cmp byte ptr [rip + {mode}], {off}",
                "je 2f",
                "mov r10, qword ptr [rip + raddle_tls@GOTTPOFF]",
                "mov r11, qword ptr [rsp]",
                "mov qword ptr fs:[r10 + {caller}], r11",
                $crate::export::if_in_handler!($class),
                "push qword ptr [rsp + 8]",
                ".cfi_adjust_cfa_offset 8",
                "call {inner}",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "mov r10, qword ptr [rip + raddle_tls@GOTTPOFF]",
                "cmp qword ptr fs:[r10 + {cancel}], 0",
                "jne {cancelled}",
                "ret",
                "2:",
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "push r9",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 56",
                "call {real}",
                "add rsp, 8",
                "pop r9",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                ".cfi_adjust_cfa_offset -56",
                "jmp rax",
                $crate::export::then_look!($class $name),
                ".cfi_endproc",
                $(left = sym $left,)?
                mode = sym $crate::shared::MODE,
                off = const $crate::shared::OFF,
                real = sym $name::real,
                caller = const $crate::tls::CALLER,
                cancel = const $crate::tls::CANCEL,
                inner = sym $inner,
                cancelled = sym $crate::export::raddle_cancel,
            )
        }
    };
}
pub(crate) use export_cancellable;

/// Exports functions that are libc's own, after a look at their arguments: `note` gets the
/// arguments and returns the address of libc's function, which then runs as if it had been called
/// directly. So no frame of ours is below callbacks of the program's.
macro_rules! export_noted {
    (unsafe $class:ident: $($name:ident => $note:path;)*) => {$(
        $crate::export::export_noted!(@one $class $name $note);
    )*};
    ($($name:ident => $note:path;)*) => {$(
        $crate::export::export_noted!(@one SAFE $name $note);
    )*};
    (@one $class:ident $name:ident $note:path) => {
        /// See the function that looks at its arguments.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "mov r10, qword ptr [rip + raddle_tls@GOTTPOFF]",
                "mov r11, qword ptr [rsp]",
                "mov qword ptr fs:[r10 + {caller}], r11",
                $crate::export::if_in_handler!($class),
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "push r9",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 56",
                "call {note}",
                "add rsp, 8",
                "pop r9",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                ".cfi_adjust_cfa_offset -56",
                "jmp rax",
                $crate::export::then_look!($class $name),
                ".cfi_endproc",
                caller = const $crate::tls::CALLER,
                note = sym $note,
            )
        }
    };
}
pub(crate) use export_noted;

/// As [`export_noted!`], for functions with a variable number of arguments, some of which may be in
/// vector registers.
macro_rules! export_noted_variadic {
    (unsafe $class:ident: $($name:ident => $note:path;)*) => {$(
        $crate::export::export_noted_variadic!(@one $class $name $note);
    )*};
    ($($name:ident => $note:path;)*) => {$(
        $crate::export::export_noted_variadic!(@one SAFE $name $note);
    )*};
    (@one $class:ident $name:ident $note:path) => {
        /// See the function that looks at its arguments.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "mov r10, qword ptr [rip + raddle_tls@GOTTPOFF]",
                "mov r11, qword ptr [rsp]",
                "mov qword ptr fs:[r10 + {caller}], r11",
                $crate::export::if_in_handler!($class),
                "sub rsp, 200",
                ".cfi_adjust_cfa_offset 200",
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
                // The number of vector registers.
                "mov qword ptr [rsp + 176], rax",
                "call {note}",
                "mov r11, rax",
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
                "add rsp, 200",
                ".cfi_adjust_cfa_offset -200",
                "jmp r11",
                $crate::export::then_look!($class $name),
                ".cfi_endproc",
                caller = const $crate::tls::CALLER,
                note = sym $note,
            )
        }
    };
}
pub(crate) use export_noted_variadic;

/// Exports functions with a variable number of arguments. The inner function gets the fixed ones
/// and a `va_list`, in the named register of the argument that follows them.
macro_rules! export_variadic {
    (unsafe $class:ident: $($name:ident($n_fixed:literal, $register:literal) => $inner:path;)*) => {$(
        $crate::export::export_variadic!(@one $class $name $n_fixed, $register, $inner);
    )*};
    ($($name:ident($n_fixed:literal, $register:literal) => $inner:path;)*) => {$(
        $crate::export::export_variadic!(@one SAFE $name $n_fixed, $register, $inner);
    )*};
    (@one $class:ident $name:ident $n_fixed:literal, $register:literal, $inner:path) => {
        /// See the inner function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "mov r10, qword ptr [rip + raddle_tls@GOTTPOFF]",
                "mov r11, qword ptr [rsp]",
                "mov qword ptr fs:[r10 + {caller}], r11",
                $crate::export::if_in_handler!($class),
                "sub rsp, 216",
                ".cfi_adjust_cfa_offset 216",
                // The area of registers, as the ABI wants it.
                "mov qword ptr [rsp + 32], rdi",
                "mov qword ptr [rsp + 40], rsi",
                "mov qword ptr [rsp + 48], rdx",
                "mov qword ptr [rsp + 56], rcx",
                "mov qword ptr [rsp + 64], r8",
                "mov qword ptr [rsp + 72], r9",
                "test al, al",
                "je 2f",
                "movaps xmmword ptr [rsp + 80], xmm0",
                "movaps xmmword ptr [rsp + 96], xmm1",
                "movaps xmmword ptr [rsp + 112], xmm2",
                "movaps xmmword ptr [rsp + 128], xmm3",
                "movaps xmmword ptr [rsp + 144], xmm4",
                "movaps xmmword ptr [rsp + 160], xmm5",
                "movaps xmmword ptr [rsp + 176], xmm6",
                "movaps xmmword ptr [rsp + 192], xmm7",
                "2:",
                // The list: offsets of the next arguments in that area, where the others are, the
                // area.
                "mov dword ptr [rsp], {n_fixed} * 8",
                "mov dword ptr [rsp + 4], 48",
                "lea r11, [rsp + 224]",
                "mov qword ptr [rsp + 8], r11",
                "lea r11, [rsp + 32]",
                "mov qword ptr [rsp + 16], r11",
                concat!("mov ", $register, ", rsp"),
                "call {inner}",
                "add rsp, 216",
                ".cfi_adjust_cfa_offset -216",
                "ret",
                $crate::export::then_look!($class $name),
                ".cfi_endproc",
                caller = const $crate::tls::CALLER,
                n_fixed = const $n_fixed,
                inner = sym $inner,
            )
        }
    };
}
pub(crate) use export_variadic;
