//! Signals that kill: where it happened is noted before it does.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU64, Ordering};

use libc::{c_int, siginfo_t};
use raddle_trace::control::Ending;
use raddle_trace::record::Kind;

use super::wish::{self, WISHES, Wish};
use crate::{freed, hook, lane, modules, shared, sys, tls};

const FATAL: [c_int; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGABRT,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// Where the program called `abort`, or failed an assertion.
static PLACE: AtomicU64 = AtomicU64::new(0);

/// Whether a signal reports what the thread itself did, and kills by default.
pub(super) fn kills(signal: c_int) -> bool {
    FATAL.contains(&signal)
}

/// Notes the place of what will raise a signal.
pub(in super::super) fn note_place(pc: u64) {
    PLACE.store(pc, Ordering::Relaxed);
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
            wish::install(signal, libc::SA_ONSTACK, 0);
        } else {
            WISHES.lock()[signal as usize] =
                Wish { handler: old.handler, flags: old.flags as c_int, mask: old.mask };
        }
    }
}

/// The thread did something that kills the program, unless it has a handler.
pub(super) fn note(signal: c_int, info: *mut siginfo_t, context: *mut c_void, handler: usize) {
    // SAFETY: the kernel passes the registers as they were.
    let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    // A return address points behind its instruction, and so do all places of ours.
    let at = registers[libc::REG_RIP as usize] as u64 + 1;
    let place = PLACE.load(Ordering::Relaxed);
    let pc = if signal == libc::SIGABRT && place != 0 && modules::is_program(place) {
        place
    } else {
        program_place(at, registers[libc::REG_RSP as usize] as u64)
    };
    // SAFETY: a fault's description has its address.
    let address = if signal == libc::SIGABRT { 0 } else { unsafe { (*info).si_addr() as u64 } };
    if tls::get(tls::TURN) == 1 && shared::mode() == shared::TRACE {
        lane::append_all(Kind::Signal, signal as u8, address, 0, pc, &[]);
    } else {
        hook::record(Kind::Signal, signal as u8, address, 0, pc, &[]);
    }
    if handler != libc::SIG_DFL {
        return;
    }
    let control = shared::control();
    if control.ending.load(Ordering::Relaxed) == Ending::None as u32 {
        control.thread.store(tls::thread().unwrap_or(0), Ordering::Relaxed);
        control.pc.store(pc, Ordering::Relaxed);
        control.addr.store(address, Ordering::Relaxed);
        control.code.store(signal, Ordering::Relaxed);
        let freed = signal == libc::SIGSEGV && freed::is_protected(address);
        shared::fail(if freed { Ending::UseAfterFree } else { Ending::Signal }, b"");
    }
}

/// If it happened in a library, the call into it: the first word on the stack that is
/// an address in the program's code. It may be one that was left there; better than none.
fn program_place(pc: u64, stack: u64) -> u64 {
    const WORDS: usize = 512;
    if modules::is_program(pc) {
        return pc;
    }
    let mut words = [0u8; WORDS * 8];
    // The stack may end before.
    for part in 0..8 {
        let bytes = WORDS;
        sys::read_own_memory(
            stack + (part * bytes) as u64,
            &mut words[part * bytes..(part + 1) * bytes],
        );
    }
    let word = |at: &[u8]| at.try_into().map_or(0, u64::from_le_bytes);
    words.chunks_exact(8).map(word).find(|&word| modules::is_program_code(word)).unwrap_or(pc)
}
