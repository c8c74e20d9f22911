//! The thread-local words that every access needs.
//!
//! They are in the static thread-local block (initial-exec), so reading one takes two
//! instructions and no call. All start as zero, which means «not under control»: with
//! [`COUNTDOWN`] at zero, the first access of a thread takes the slow path and is handled there.

use core::arch::{asm, global_asm};

/// Steps left before the thread must ask again.
pub(crate) const COUNTDOWN: usize = 0;
/// Address of the thread's [`raddle_trace::control::Lane`].
pub(crate) const LANE: usize = 8;
/// Return address of the current interposed call.
pub(crate) const CALLER: usize = 16;
/// Number of the thread plus 1; 0 if it is not under control.
pub(crate) const THREAD: usize = 24;
/// What [`COUNTDOWN`] was when the thread last got steps.
pub(crate) const BUDGET: usize = 32;
/// 1 while the thread holds the turn.
pub(crate) const TURN: usize = 40;
/// Above 0 while events are neither recorded nor scheduled: inside the runtime, or by annotation.
pub(crate) const QUIET: usize = 48;
/// 1 if the thread must test for cancellation on the way out.
pub(crate) const CANCEL: usize = 56;
/// The kernel's id of the thread, once it is under control.
pub(crate) const KERNEL_ID: usize = 64;
/// Rounds of thread-key destructors so far.
pub(crate) const ROUNDS: usize = 72;
/// Bit set of deferred signals.
pub(crate) const SIGNALS: usize = 80;
/// State of this thread's random numbers in free mode.
pub(crate) const RANDOM: usize = 88;
/// The fiber that the thread is running.
pub(crate) const FIBER: usize = 96;
/// The thread's memory for signals.
pub(crate) const SIGNAL_AREA: usize = 112;
/// 1 while an arriving signal is handled immediately.
pub(crate) const SIGNALS_NOW: usize = 120;
/// Return address of the current `new` or `delete`, until the allocation that it makes consumes
/// it.
pub(crate) const NEW_CALLER: usize = 144;
/// Number of libc's files that the thread has locked.
pub(crate) const FILES: usize = 128;
/// 1 if the thread has ended, or must not be taken under control.
pub(crate) const FOREIGN: usize = 136;
/// Return address of the current string function: separate from [`CALLER`], since the compiler
/// inserts calls to those in our own code too.
pub(crate) const STRING_CALLER: usize = 104;

/// Keys of [`crate::history`] for reads: [`THREAD`] above 48 bits for the code address.
/// [`WRITER`] also has the highest bit set.
pub(crate) const READER: usize = 152;
/// The key for writes; see [`READER`].
pub(crate) const WRITER: usize = 160;

/// While free threads are collected: 1 if the access at which [`COUNTDOWN`] runs out is delayed.
pub(crate) const DELAYED: usize = 168;

/// The program's value of our thread key, while it has that: see [`crate::key`].
pub(crate) const LENT_VALUE: usize = 176;
/// The loan that [`LENT_VALUE`] belongs to.
pub(crate) const LENT_LOAN: usize = 184;

/// While a signal handler of the program's runs: what [`crate::handler`] knows about it, as an
/// address on its stack and a bit. 0 outside handlers.
pub(crate) const HANDLER: usize = 192;

/// [`HANDLER`], as the assembler wants it.
macro_rules! handler_word {
    () => {
        "192"
    };
}
pub(crate) use handler_word;

const _: () = assert!(HANDLER == 192);

global_asm!(
    ".section .tbss,\"awT\",@nobits",
    ".balign 64",
    ".hidden raddle_tls",
    ".type raddle_tls,@object",
    "raddle_tls:",
    ".zero 200",
    ".size raddle_tls, 200",
    ".text",
);

/// A thread-local word.
#[inline(always)]
pub(crate) fn get(word: usize) -> u64 {
    let value: u64;
    // SAFETY: reads a word of this thread's own block.
    unsafe {
        asm!(
            "mov {base}, qword ptr [rip + raddle_tls@GOTTPOFF]",
            "mov {value}, qword ptr fs:[{base} + {word}]",
            base = out(reg) _, value = lateout(reg) value, word = in(reg) word,
            options(nostack, readonly, preserves_flags),
        );
    }
    value
}

/// Sets a thread-local word.
#[inline(always)]
pub(crate) fn set(word: usize, value: u64) {
    // SAFETY: writes a word of this thread's own block.
    unsafe {
        asm!(
            "mov {base}, qword ptr [rip + raddle_tls@GOTTPOFF]",
            "mov qword ptr fs:[{base} + {word}], {value}",
            base = out(reg) _, value = in(reg) value, word = in(reg) word,
            options(nostack, preserves_flags),
        );
    }
}

/// The address of this thread's block, through which another thread can reach it.
pub(crate) fn address() -> u64 {
    let address: u64;
    // SAFETY: computes an address; the thread's control block holds its own address at fs:0.
    unsafe {
        asm!(
            "mov {address}, qword ptr [rip + raddle_tls@GOTTPOFF]",
            "add {address}, qword ptr fs:[0]",
            address = out(reg) address,
            options(nostack, readonly),
        );
    }
    address
}

/// The number of the running thread, if it is under control.
#[inline(always)]
pub(crate) fn thread() -> Option<u32> {
    (get(THREAD) as u32).checked_sub(1)
}

/// Sets the number of the running thread; none if it is not under control.
pub(crate) fn set_thread(thread: Option<u32>) {
    let number = thread.map_or(0, |thread| u64::from(thread) + 1);
    set(THREAD, number);
    // There can be more free threads than there is room for; the others get no number.
    let number = if number < 1 << 15 { number } else { 0 };
    set(READER, number << 48);
    set(WRITER, number << 48 | 1 << 63);
}

/// Steps that the running thread has performed of its budget.
pub(crate) fn performed() -> u64 {
    get(BUDGET).saturating_sub((get(COUNTDOWN) as i64).max(0) as u64)
}
