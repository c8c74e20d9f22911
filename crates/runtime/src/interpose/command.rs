//! Commands: `system`, `popen`, `pclose`.
//!
//! libc's functions wait for the shell in the kernel. Ours wait in the scheduler, as for any other
//! child process.

use core::ffi::{CStr, c_char, c_void};

use libc::{c_int, pid_t, sigaction as Action, sigset_t};
use raddle_trace::control::Outside;
use raddle_trace::record::Wake;

use super::descriptor::{self, OUT};
use super::process::{Strings, start_child, wait4_inner};
use super::signal::mask_changed;
use super::{ends, fail, foreign, stdio};
use crate::export::{export, export_cancellable};
use crate::guarded::Guarded;
use crate::real::real;
use crate::sched::thread::{NEVER, Wait};
use crate::sched::{self, SCHED, Which};
use crate::{hook, proc, sys, tls};

export! { unsafe OTHER:
    popen => open_command;
}

export_cancellable! { unsafe OTHER:
    system => run_command;
    pclose => close_command;
}

/// Keyboard signals that are ignored while commands run, as POSIX demands of `system`.
const KEYBOARD: [c_int; 2] = [libc::SIGINT, libc::SIGQUIT];

/// What the program does on these otherwise, and how many commands run.
static BEFORE: Guarded<(u32, [Option<Action>; 2])> = Guarded::new((0, [None; 2]));

fn set_action(signal: c_int, new: *const Action) -> Action {
    // SAFETY: all zeros is a valid sigaction.
    let mut old: Action = unsafe { core::mem::zeroed() };
    real!(sigaction(signal => c_int, new => *const Action, &raw mut old => *mut Action) -> c_int);
    old
}

/// Ignores keyboard signals; returns those that were not ignored before.
fn ignore_keyboard() -> u64 {
    // SAFETY: all zeros is a valid sigaction.
    let mut ignored: Action = unsafe { core::mem::zeroed() };
    ignored.sa_sigaction = libc::SIG_IGN;
    let mut before = BEFORE.lock();
    if before.0 == 0 {
        before.1 = KEYBOARD.map(|signal| Some(set_action(signal, &raw const ignored)));
    }
    before.0 += 1;
    let heeded = KEYBOARD
        .iter()
        .zip(&before.1)
        .filter(|(_, action)| action.is_some_and(|action| action.sa_sigaction != libc::SIG_IGN));
    heeded.fold(0, |set, (&signal, _)| set | crate::signals::bit(signal))
}

/// Undoes [`ignore_keyboard`].
fn heed_keyboard() {
    let mut before = BEFORE.lock();
    before.0 -= 1;
    if before.0 == 0 {
        for (signal, action) in KEYBOARD.into_iter().zip(before.1) {
            if let Some(action) = action {
                set_action(signal, &raw const action);
            }
        }
    }
}

/// Starts a shell with a command; returns an error number. These signals get their default action
/// in it, and it blocks those of `mask`.
fn start_shell(command: *const c_char, defaults: u64, mask: u64) -> Result<pid_t, c_int> {
    unsafe extern "C" {
        static environ: Strings;
    }
    let words: [&CStr; 3] = [c"sh", c"-c", c"--"];
    let arguments =
        [words[0].as_ptr(), words[1].as_ptr(), words[2].as_ptr(), command, core::ptr::null()];
    let mut id = 0;
    let set = |bits: u64| {
        // SAFETY: all zeros is a valid set, which begins with the kernel's 64 bits.
        let mut set: sigset_t = unsafe { core::mem::zeroed() };
        // SAFETY: as above.
        unsafe { *(&raw mut set).cast::<u64>() = bits };
        set
    };
    let (defaults, mask) = (set(defaults), set(mask));
    let flags = (libc::POSIX_SPAWN_SETSIGDEF | libc::POSIX_SPAWN_SETSIGMASK) as i16;
    // SAFETY: libc initializes it before anything else.
    let mut attributes: libc::posix_spawnattr_t = unsafe { core::mem::zeroed() };
    // SAFETY: our own attributes and sets.
    unsafe {
        libc::posix_spawnattr_init(&raw mut attributes);
        libc::posix_spawnattr_setsigdefault(&raw mut attributes, &raw const defaults);
        libc::posix_spawnattr_setsigmask(&raw mut attributes, &raw const mask);
        libc::posix_spawnattr_setflags(&raw mut attributes, flags);
    }
    let path = c"/bin/sh".as_ptr();
    // SAFETY: libc's variable.
    let environment = unsafe { environ };
    let error = real!(posix_spawn(&raw mut id => *mut pid_t, path => *const c_char, core::ptr::null() => *const c_void, &raw const attributes => *const libc::posix_spawnattr_t, arguments.as_ptr() => *const *const c_char, environment => Strings) -> c_int);
    // SAFETY: initialized above.
    unsafe { libc::posix_spawnattr_destroy(&raw mut attributes) };
    if error == 0 { Ok(id) } else { Err(error) }
}

/// The status of a shell that could not be started.
const NO_SHELL: c_int = 127 << 8;

extern "C" fn run_command(command: *const c_char) -> c_int {
    let pc = hook::caller();
    let Some(me) = hook::me().filter(|_| !command.is_null()) else {
        return real!(system(command => *const c_char) -> c_int);
    };
    if sched::cancel_point(me) {
        return fail(libc::EINTR);
    }
    let defaults = ignore_keyboard();
    let child_ends = crate::signals::bit(libc::SIGCHLD);
    let mut mask = 0u64;
    sys::syscall!(
        libc::SYS_rt_sigprocmask,
        libc::SIG_BLOCK,
        &raw const child_ends,
        &raw mut mask,
        8
    );
    SCHED.lock().threads[me as usize].mask |= child_ends;
    let start = || start_shell(command, defaults, mask);
    let child = start_child(Outside::System, pc, true, start, |child| child.ok());
    let status = child.map_or(NO_SHELL, await_shell);
    sys::syscall!(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const mask, 0, 8);
    mask_changed();
    heed_keyboard();
    status
}

/// Waits for a shell, and ends it if the thread is cancelled meanwhile.
fn await_shell(child: pid_t) -> c_int {
    let mut status = 0;
    while wait4_inner(child, &raw mut status, 0, core::ptr::null_mut()) < 0 {
        if tls::get(tls::CANCEL) != 0 {
            sys::syscall!(libc::SYS_kill, child, libc::SIGKILL);
            sys::syscall!(libc::SYS_wait4, child, 0, 0, 0);
            return -1;
        }
        // SAFETY: libc's thread-local variable.
        if unsafe { *libc::__errno_location() } != libc::EINTR {
            return -1;
        }
    }
    status
}

/// Where glibc keeps the id of the child behind a stream, after the `FILE` and its table of
/// functions.
const CHILD: usize = 224;

/// The child behind a stream of `popen`.
fn child_of(file: *mut c_void) -> Option<u32> {
    if file.is_null() {
        return None;
    }
    // SAFETY: within what libc has allocated for such a stream.
    let id = unsafe { *file.byte_add(CHILD).cast::<pid_t>() };
    u32::try_from(id).ok().filter(|&id| id > 0 && proc::is_child(id))
}

extern "C" fn open_command(command: *const c_char, kind: *const c_char) -> *mut c_void {
    let call = || real!(popen(command => *const c_char, kind => *const c_char) -> *mut c_void);
    let id_of = |file: &*mut c_void| child_of(*file).map(|id| id as pid_t);
    let file = start_child(Outside::Popen, hook::caller(), true, call, id_of);
    if !file.is_null() {
        foreign::lead_out(stdio::descriptor_of(file));
    }
    file
}

/// Closes the pipe to a child, and waits for the child.
extern "C" fn close_command(file: *mut c_void) -> c_int {
    let pc = hook::caller();
    let call = || {
        // libc frees the file.
        tls::set(tls::QUIET, tls::get(tls::QUIET) + 1);
        let status = real!(pclose(file => *mut c_void) -> c_int);
        tls::set(tls::QUIET, tls::get(tls::QUIET) - 1);
        status
    };
    let Some(me) = hook::me() else { return call() };
    let Some(child) = child_of(file) else { return sched::outside(me, pc, call) };
    close_pipe(stdio::descriptor_of(file), file, pc);
    let which = Which { kind: libc::P_PID, id: child, options: libc::WEXITED };
    loop {
        match hook::sync(me, pc, Wait::Child(&raw const which as u64), NEVER) {
            Wake::Interrupted => sched::deliver(),
            Wake::Cancelled => return sched::outside(me, pc, call),
            _ => break,
        }
    }
    let status = call();
    if tls::get(tls::SIGNALS) != 0 {
        sched::deliver();
    }
    status
}

/// Closes the program's end of the pipe, which the child may wait for; the stream has something
/// else to close then.
fn close_pipe(pipe: c_int, file: *mut c_void, pc: u64) {
    let flags = sys::syscall!(libc::SYS_fcntl, pipe, libc::F_GETFL);
    if flags >= 0 && flags as c_int & libc::O_ACCMODE != libc::O_RDONLY {
        // There is room for what a stream holds back.
        descriptor::until_ready(pc, pipe, OUT);
        real!(fflush(file => *mut c_void) -> c_int);
    }
    ends::closes(pipe, pc);
    let nothing = sys::open(&sys::Path::new(b"/dev/null"), libc::O_RDWR);
    if nothing >= 0 {
        sys::syscall!(libc::SYS_dup3, nothing, pipe, libc::O_CLOEXEC);
        sys::close(nothing);
    }
}
