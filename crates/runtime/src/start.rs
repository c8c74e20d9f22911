//! Start and end.

use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use raddle_trace::record::Kind;

use crate::abi::stub::{self, raddle_main};
use crate::interpose::{affinity, process, signal, thread};
use crate::real::{Real, real};
use crate::sched::object::NOBODY;
use crate::sched::thread::{NEVER, Wait};
use crate::sched::{self, SCHED};
use crate::{freed, hook, lane, modules, shared, sys, tls};

unsafe extern "C" {
    static mut environ: *mut *mut c_char;
}

static STARTED: AtomicBool = AtomicBool::new(false);

/// Called by every instrumented module; the first call counts that comes when libc is
/// ready. An executable's own first call comes before any library is initialized.
pub(crate) fn start() {
    // SAFETY: libc's own variable.
    if unsafe { environ }.is_null() {
        return;
    }
    if STARTED.swap(true, Ordering::AcqRel) {
        return;
    }
    note_ranges();
    stub::TESTCANCEL.store(REAL_TESTCANCEL.address(), Ordering::Release);
    let Some(descriptor) = open_control() else { return };
    let attached = shared::attach(descriptor);
    sys::close(descriptor);
    let Some(control) = attached else { return };
    restore_environment();
    // If raddle dies, nobody is left to take the trace or to say when it is enough.
    sys::syscall!(libc::SYS_prctl, libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    let_through(
        control.plan.options.load(Ordering::Relaxed) >> raddle_trace::control::HELD_SIGNALS_SHIFT,
    );
    modules::scan();
    signal::start();
    process::start();
    note_stack_size();
    thread::KEY.store(last_key(), Ordering::Relaxed);
    thread::set_key();
    let stack = main_stack();
    if control.plan.mode.load(Ordering::Relaxed) == raddle_trace::control::Mode::Free as u32 {
        shared::set_mode();
        hook::free_begin(NOBODY, 0, stack);
        return;
    }
    affinity::pin(control.plan.cpu.load(Ordering::Relaxed));
    freed::start();
    lane::open(0, 0);
    tls::set(tls::LANE, lane::address(0));
    tls::set_thread(Some(0));
    let slot = shared::slot(0);
    slot.stack_low.store(stack.0, Ordering::Relaxed);
    slot.stack_high.store(stack.1, Ordering::Relaxed);
    SCHED.lock().start();
    sched::first(0);
    shared::set_mode();
    hook::record(Kind::Begin, 0, 0, 0, 0, &[u64::from(NOBODY), stack.0, stack.1]);
}

/// Lets signals through that are blocked only because our parent holds them back.
fn let_through(signals: u32) {
    let mask = u64::from(signals);
    sys::syscall!(libc::SYS_rt_sigprocmask, libc::SIG_UNBLOCK, &raw const mask, 0, 8);
}

/// A thread key whose destructor runs behind those of the program's keys: libc calls them in
/// the order of their numbers, and gives out the lowest that is free.
fn last_key() -> u32 {
    const KEYS: usize = 256;
    let mut keys = [0; KEYS];
    let mut n = 0;
    // SAFETY: the destructor is of the type that libc wants.
    while n < KEYS && unsafe { libc::pthread_key_create(&raw mut keys[n], Some(thread::end)) } == 0
    {
        n += 1;
    }
    let Some(last) = n.checked_sub(1) else { die!("libc has no thread key left") };
    for &key in &keys[..last] {
        // SAFETY: a key of ours, which nobody uses.
        unsafe { libc::pthread_key_delete(key) };
    }
    keys[last]
}

static REAL_TESTCANCEL: Real = Real::new(c"pthread_testcancel", None);

static PARENT: AtomicU64 = AtomicU64::new(0);

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
    PARENT.store(number(parent)?, Ordering::Relaxed);
    open_of_parent(number(descriptor)?)
}

/// Opens what the parent has open.
pub(crate) fn open_of_parent(descriptor: u64) -> Option<i64> {
    let mut path = crate::die::Line { bytes: [0; 512], len: 0 };
    let _ = core::fmt::Write::write_fmt(
        &mut path,
        format_args!("/proc/{}/fd/{descriptor}\0", PARENT.load(Ordering::Relaxed)),
    );
    let file = sys::open(&path.bytes[..path.len], libc::O_RDWR);
    (file >= 0).then_some(file)
}

/// The index and text of every entry of the environment.
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

/// Children of the target are to find the environment as the user has it: without us.
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
            // It is shorter than what is there, which holds it and our library's path.
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
    // Without a limit glibc takes two megabytes.
    let bytes = if limit.rlim_cur == libc::RLIM_INFINITY { 2 << 20 } else { limit.rlim_cur };
    thread::STACK_BYTES.store(bytes, Ordering::Relaxed);
}

/// The main thread's stack: it ends behind the environment, and may grow to its limit.
fn main_stack() -> (u64, u64) {
    // SAFETY: libc's own variable, in static memory; it points at the upper end of the stack.
    let high = (unsafe { environ } as u64).next_multiple_of(4096) + (256 << 10);
    (high.saturating_sub(thread::STACK_BYTES.load(Ordering::Relaxed)), high)
}

static OWN: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
static LIBC: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
static LOADER: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// Where this library is.
pub(crate) fn own_range() -> (u64, u64) {
    (OWN[0].load(Ordering::Relaxed), OWN[1].load(Ordering::Relaxed))
}

/// Where the C library is.
pub(crate) fn libc_range() -> (u64, u64) {
    (LIBC[0].load(Ordering::Relaxed), LIBC[1].load(Ordering::Relaxed))
}

/// Whether a code address is the loader's.
pub(crate) fn in_loader(pc: u64) -> bool {
    (LOADER[0].load(Ordering::Relaxed)..LOADER[1].load(Ordering::Relaxed)).contains(&pc)
}

fn note_ranges() {
    // SAFETY: asks for the address of libc's own functions.
    let in_libc = unsafe { libc::dlsym(libc::RTLD_NEXT, c"gnu_get_libc_version".as_ptr()) } as u64;
    // SAFETY: as above.
    let in_loader = unsafe { libc::dlsym(libc::RTLD_NEXT, c"__tls_get_addr".as_ptr()) } as u64;
    let here = start as *const () as u64;
    for (place, range) in [(here, &OWN), (in_libc, &LIBC), (in_loader, &LOADER)] {
        if let Some((low, high)) = modules::range_of(place) {
            range[0].store(low, Ordering::Relaxed);
            range[1].store(high, Ordering::Relaxed);
        }
    }
}

/// The program's `main`.
pub(crate) static MAIN: AtomicUsize = AtomicUsize::new(0);

type Main = unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

/// libc calls `exit` behind `main` without our seeing it, so `main` itself is replaced.
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

/// `main` has returned. Threads that can run may run first.
pub(crate) extern "C" fn after_main(status: c_int) -> c_int {
    if let Some(me) = hook::me() {
        hook::sync(me, 0, Wait::Nothing, NEVER);
    }
    hook::record(Kind::Exit, status as u8, 0, 0, 0, &[]);
    status
}
