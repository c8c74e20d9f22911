//! Start and end.

use core::arch::global_asm;
use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use raddle_trace::control::{Deliver, EVERY, Mode};
use raddle_trace::record::Kind;

use crate::interpose::{affinity, process, signal, thread};
use crate::real::{Real, real};
use crate::sched::object::NOBODY;
use crate::sched::thread::{NEVER, Wait};
use crate::sched::{self, SCHED};
use crate::{
    export, freed, history, hook, inside, key, lane, loader, modules, repeats, shared, sys, tls,
};

unsafe extern "C" {
    static mut environ: *mut *mut c_char;
}

static STARTED: AtomicBool = AtomicBool::new(false);

/// Called by every instrumented module; the first call after libc is ready counts. An
/// executable's own first call comes before any library is initialized.
pub(crate) fn start() {
    // SAFETY: libc's own variable.
    if unsafe { environ }.is_null() {
        return;
    }
    if STARTED.swap(true, Ordering::AcqRel) {
        return;
    }
    modules::note_ranges();
    export::TESTCANCEL.store(REAL_TESTCANCEL.address(), Ordering::Release);
    let Some(descriptor) = open_control() else { return };
    let attached = shared::attach(descriptor);
    sys::close(descriptor);
    let Some(control) = attached else { return };
    restore_environment();
    // If raddle dies, nobody is left to read the trace or to stop the target.
    sys::syscall!(libc::SYS_prctl, libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    let_through(
        control.plan.options.load(Ordering::Relaxed) >> raddle_trace::control::HELD_SIGNALS_SHIFT,
    );
    modules::scan();
    loader::start();
    signal::start();
    process::start();
    inside::start();
    note_stack_size();
    if !key::start(thread::raddle_thread_end as *const () as usize) {
        die!("libc has no thread key left");
    }
    key::call_at_end();
    let stack = main_stack();
    if control.plan.mode.load(Ordering::Relaxed) == Mode::Free as u32 {
        set_mode();
        hook::free_begin(NOBODY, 0, stack);
        return;
    }
    affinity::pin(control.plan.cpu.load(Ordering::Relaxed));
    freed::start();
    lane::open(0, 0);
    tls::set(tls::LANE, lane::address(0));
    tls::set_thread(Some(0));
    tls::set(tls::KERNEL_ID, u64::from(sys::gettid()));
    let slot = shared::slot(0);
    slot.stack_low.store(stack.0, Ordering::Relaxed);
    slot.stack_high.store(stack.1, Ordering::Relaxed);
    SCHED.lock().start();
    sched::first(0);
    set_mode();
    hook::record(Kind::Begin, 0, 0, 0, 0, &[u64::from(NOBODY), stack.0, stack.1]);
}

/// Sets the mode that the plan asks for.
fn set_mode() {
    let plan = &shared::control().plan;
    if plan.options.load(Ordering::Relaxed) & EVERY != 0 {
        repeats::record_every();
    }
    let mode = match (
        Mode::from_u8(plan.mode.load(Ordering::Relaxed) as u8),
        Deliver::from_u8(plan.deliver.load(Ordering::Relaxed) as u8),
    ) {
        (Some(Mode::Free), Some(Deliver::Histories)) if history::start_by(plan) => {
            shared::COLLECT_FREE
        }
        (Some(Mode::Free), _) => shared::FREE,
        (_, Some(Deliver::Trace)) => shared::TRACE,
        (_, Some(Deliver::Histories)) if history::start_by(plan) => shared::COLLECT,
        _ => shared::COUNT,
    };
    shared::MODE.store(mode, Ordering::Release);
}

/// Unblocks signals that are blocked only because our parent does so.
fn let_through(signals: u32) {
    let mask = u64::from(signals);
    sys::syscall!(libc::SYS_rt_sigprocmask, libc::SIG_UNBLOCK, &raw const mask, 0, 8);
}

#[unsafe(link_section = "raddle_real")]
static REAL_TESTCANCEL: Real = Real::new(c"pthread_testcancel", None);

/// Opens the control block that the environment names.
fn open_control() -> Option<i64> {
    let value = variable(raddle_trace::control::VARIABLE.as_bytes())?;
    let mut parts = value.split(|&byte| byte == b':');
    let (parent, descriptor) = (parts.next()?, parts.next()?);
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0u64, |n, digit| {
            digit.is_ascii_digit().then(|| n * 10 + u64::from(digit - b'0'))
        })
    };
    shared::PARENT.store(number(parent)?, Ordering::Relaxed);
    shared::open_of_parent(number(descriptor)?)
}

/// Index and text of every environment entry.
fn entries() -> impl Iterator<Item = (usize, &'static [u8])> {
    // SAFETY: libc's own variable.
    let start = unsafe { environ };
    (0..).map_while(move |index| {
        if start.is_null() {
            return None;
        }
        // SAFETY: the list ends with a null pointer, where we stop.
        let entry = unsafe { *start.add(index) };
        // SAFETY: every entry is a zero-terminated string.
        (!entry.is_null()).then(|| (index, unsafe { CStr::from_ptr(entry) }.to_bytes()))
    })
}

fn variable(name: &[u8]) -> Option<&'static [u8]> {
    entries().find_map(|(_, entry)| entry.strip_prefix(name)?.strip_prefix(b"="))
}

/// Restores the user's environment for children of the target, without us.
fn restore_environment() {
    let before = variable(b"RADDLE_PRELOAD_WAS");
    let mut kept = 0;
    // SAFETY: libc's own variable.
    let list = unsafe { environ };
    for (index, entry) in entries() {
        let preload = entry.starts_with(b"LD_PRELOAD=");
        if entry.starts_with(b"RADDLE_") || preload && before.is_none_or(<[u8]>::is_empty) {
            continue;
        }
        // SAFETY: both indices are within the list.
        let from = unsafe { *list.add(index) };
        if let (true, Some(before)) = (preload, before) {
            // It is shorter than what is there, which contains it and our library's path.
            for (at, &byte) in before.iter().chain(b"\0").enumerate() {
                // SAFETY: within the entry's own text, by the comment above.
                unsafe { *from.add(b"LD_PRELOAD=".len() + at) = byte as c_char };
            }
        }
        // SAFETY: as above.
        unsafe { *list.add(kept) = from };
        kept += 1;
    }
    // SAFETY: as above; the end moves to the front.
    unsafe { *list.add(kept) = core::ptr::null_mut() };
}

fn note_stack_size() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    sys::syscall!(libc::SYS_prlimit64, 0, libc::RLIMIT_STACK, 0, &raw mut limit);
    // Without a limit, glibc uses two megabytes.
    let bytes = if limit.rlim_cur == libc::RLIM_INFINITY { 2 << 20 } else { limit.rlim_cur };
    thread::STACK_BYTES.store(bytes, Ordering::Relaxed);
}

/// The main thread's stack: it ends after the environment, and may grow to its limit.
fn main_stack() -> (u64, u64) {
    // SAFETY: libc's own variable, in static memory; it points at the upper end of the stack.
    let high = (unsafe { environ } as u64).next_multiple_of(4096) + (256 << 10);
    (high.saturating_sub(thread::STACK_BYTES.load(Ordering::Relaxed)), high)
}

/// The program's `main`.
static MAIN: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" {
    /// Replaces `main`.
    fn raddle_main(argc: c_int, argv: *mut *mut c_char, env: *mut *mut c_char) -> c_int;
}

global_asm!(
    ".text",
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
    main = sym MAIN,
    after_main = sym after_main,
);

type Main = unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

/// libc calls `exit` after `main` where we cannot see it, so `main` itself is replaced.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn __libc_start_main(
    main: usize,
    argc: c_int,
    argv: *mut *mut c_char,
    init: usize,
    fini: usize,
    loader_fini: usize,
    stack_end: usize,
) -> c_int {
    MAIN.store(main, Ordering::Relaxed);
    real!(__libc_start_main(raddle_main => Main, argc => c_int, argv => *mut *mut c_char, init => usize, fini => usize, loader_fini => usize, stack_end => usize) -> c_int)
}

/// Runs after `main` has returned. Threads that can run may run first.
extern "C" fn after_main(status: c_int) -> c_int {
    if let Some(me) = hook::me() {
        hook::sync(me, 0, Wait::Nothing, NEVER);
    }
    hook::record(Kind::Exit, status as u8, 0, 0, 0, &[]);
    status
}
