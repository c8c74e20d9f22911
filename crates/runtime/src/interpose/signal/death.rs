//! Deadly signals: stores what the parent needs to unwind the thread before it dies.
//!
//! Nothing is looked up here. The parent reconstructs the call stack from the registers and a
//! part of the stack ([`Death`]).
//!
//! A handler may run on a stack of its own and then abort, as Rust's does when a stack
//! overflows. Then the interrupted stack is copied as well.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};

use libc::{c_int, siginfo_t};
use raddle_trace::control::{Death, Ending, STACK_BYTES, StackCopy};
use raddle_trace::record::Kind;

use super::install;
use crate::signals::{DISPOSITIONS, Disposition, INTERRUPTED_AT};
use crate::{freed, hook, lane, shared, sys, tls};

const FATAL: [c_int; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGABRT,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// Whether a signal reports what the thread itself did, and kills by default.
pub(super) fn kills(signal: c_int) -> bool {
    FATAL.contains(&signal)
}

/// The kernel's own layout of `sigaction`.
#[repr(C)]
struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

pub(super) fn install_all() {
    for signal in FATAL {
        let mut old = KernelAction { handler: 0, flags: 0, restorer: 0, mask: 0 };
        sys::syscall!(libc::SYS_rt_sigaction, signal, 0, &raw mut old, 8);
        if old.handler == libc::SIG_DFL {
            install(signal, libc::SA_ONSTACK, 0);
        } else {
            DISPOSITIONS.lock()[signal as usize] =
                Disposition { handler: old.handler, flags: old.flags as c_int, mask: old.mask };
        }
    }
}

/// Records that the thread did something that kills the program, unless it has a handler.
pub(super) fn record(signal: c_int, info: *mut siginfo_t, context: *mut c_void, handler: usize) {
    // SAFETY: the kernel passes the registers as they were.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    // A return address points past its instruction, and so do all code addresses of ours.
    let pc = registers[libc::REG_RIP as usize] as u64 + 1;
    // SAFETY: a fault's description has its address.
    let address = if signal == libc::SIGABRT { 0 } else { unsafe { (*info).si_addr() as u64 } };
    if tls::get(tls::TURN) == 1 && shared::mode() == shared::TRACE {
        lane::append_all(Kind::Signal, signal as u8, address, 0, pc, &[]);
    } else {
        hook::record(Kind::Signal, signal as u8, address, 0, pc, &[]);
    }
    let control = shared::control();
    let me = tls::thread().unwrap_or(0);
    let has_ended = control.ending.load(Ordering::Relaxed) != Ending::None as u32;
    if has_ended && control.thread.load(Ordering::Relaxed) == me {
        // A failed assertion: this is its `abort`, which the program may handle.
        keep(shared::death(), me, registers);
    }
    if has_ended || handler != libc::SIG_DFL {
        return;
    }
    keep(shared::death(), me, registers);
    control.thread.store(me, Ordering::Relaxed);
    control.pc.store(pc, Ordering::Relaxed);
    control.addr.store(address, Ordering::Relaxed);
    control.code.store(signal, Ordering::Relaxed);
    let freed = signal == libc::SIGSEGV && freed::is_protected(address);
    shared::fail(if freed { Ending::UseAfterFree } else { Ending::Signal }, b"");
}

/// Value of [`Death::is_kept`] while a thread fills in the rest.
const BEING_KEPT: u32 = 2;

/// Stores a thread's state for the parent, once.
fn keep(death: &Death, thread: u32, registers: &[i64; 23]) {
    let claim = death.is_kept.compare_exchange(0, BEING_KEPT, Ordering::Relaxed, Ordering::Relaxed);
    if claim.is_err() {
        return;
    }
    death.thread.store(thread, Ordering::Relaxed);
    for (to, from) in death.registers.iter().zip(ORDER) {
        to.store(registers[from as usize] as u64, Ordering::Relaxed);
    }
    let [inner, outer] = &death.stacks;
    let stack = registers[libc::REG_RSP as usize] as u64;
    // After a stack overflow, the stack pointer may be far below the last page.
    if !copy(stack, inner) {
        copy(shared::slot(thread).stack_low.load(Ordering::Relaxed), inner);
    }
    let interrupted = interrupted();
    let start = inner.start.load(Ordering::Relaxed);
    if interrupted != 0 && interrupted.wrapping_sub(start) >= STACK_BYTES as u64 {
        copy(interrupted, outer);
    }
    death.is_kept.store(1, Ordering::Release);
}

/// The registers in the order of [`Death::registers`].
const ORDER: [c_int; 17] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
    libc::REG_RIP,
];

/// Copies a stack from an address upward, skipping unreadable memory at the start, as far as it
/// can be read. False if there is nothing.
fn copy(stack: u64, into: &StackCopy) -> bool {
    const PAGE: u64 = 4096;
    let (mut start, mut at) = (stack & !7, stack & !7);
    let end = at.saturating_add(STACK_BYTES as u64);
    while at < end {
        let n_bytes = (at | (PAGE - 1)).saturating_add(1).min(end) - at;
        let to = into.words.as_ptr() as u64 + (at - start);
        let is_read = sys::copy_own_memory(at, to, n_bytes);
        match (is_read, at == start) {
            (true, _) => at += n_bytes,
            // The guard page of an overflowed stack.
            (false, true) => (start, at) = (at + n_bytes, at + n_bytes),
            (false, false) => break,
        }
    }
    into.start.store(start, Ordering::Relaxed);
    into.n_bytes.store(at - start, Ordering::Relaxed);
    at > start
}

/// The stack pointer of the code that the running signal handler of the program interrupted; 0 if
/// none is running.
fn interrupted() -> u64 {
    let area = tls::get(tls::SIGNAL_AREA);
    // SAFETY: a word of the area, which is this thread's own.
    if area == 0 { 0 } else { unsafe { (*interrupted_in(area)).load(Ordering::Relaxed) } }
}

/// Calls a handler with [`interrupted`] set.
pub(super) fn while_interrupted(context: *mut c_void, call: impl FnOnce()) {
    let area = tls::get(tls::SIGNAL_AREA);
    if area == 0 {
        return call();
    }
    // SAFETY: the kernel passes the registers as they were.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    // SAFETY: a word of the area, which is this thread's own.
    let word = unsafe { &*interrupted_in(area) };
    let before = word.swap(registers[libc::REG_RSP as usize] as u64, Ordering::Relaxed);
    call();
    word.store(before, Ordering::Relaxed);
}

fn interrupted_in(area: u64) -> *const AtomicU64 {
    (area + INTERRUPTED_AT as u64) as *const AtomicU64
}
