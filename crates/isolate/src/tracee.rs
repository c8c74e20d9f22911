//! A process that is traced: ptrace, in the few forms that are needed.
//!
//! Tracing belongs to a thread: whoever has started the process has to make all calls here.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use raddle_code::unwind;
use raddle_trial::Status;

/// The registers of a thread.
pub(crate) type Registers = libc::user_regs_struct;

/// Makes a command's process ask to be traced by the thread that starts it.
#[allow(unsafe_code, reason = "code between fork and exec")]
pub(crate) fn ask_to_be_traced(command: &mut Command) {
    // SAFETY: one system call, which is allowed between fork and exec.
    unsafe {
        command.pre_exec(|| ptrace::traceme().map_err(io::Error::from));
    }
}

/// Why a thread has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The process has ended, or only this thread.
    Ended(Status),
    /// A signal is about to be delivered; a trap is one of them.
    Signal(i32),
    /// It has started another thread.
    Cloned(Pid),
    /// It is about to end; its memory is still there.
    Exiting,
    /// It has become another program.
    Executed,
    /// At the beginning or the end of a system call.
    SystemCall,
}

/// Waits until any thread of ours stops.
pub(crate) fn wait() -> io::Result<(Pid, Stop)> {
    loop {
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        let status = match waitpid(None, Some(flags)) {
            Ok(status) => status,
            Err(Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
        };
        return Ok(match status {
            WaitStatus::Exited(pid, status) => (pid, Stop::Ended(Status::Exited(status as u8))),
            WaitStatus::Signaled(pid, signal, _) => {
                (pid, Stop::Ended(Status::Killed(signal as i32)))
            }
            WaitStatus::Stopped(pid, signal) => (pid, Stop::Signal(signal as i32)),
            WaitStatus::PtraceEvent(pid, _, event) => match event {
                libc::PTRACE_EVENT_CLONE => {
                    let child = ptrace::getevent(pid).unwrap_or(0);
                    (pid, Stop::Cloned(Pid::from_raw(child as i32)))
                }
                libc::PTRACE_EVENT_EXIT => (pid, Stop::Exiting),
                _ => (pid, Stop::Executed),
            },
            WaitStatus::PtraceSyscall(pid) => (pid, Stop::SystemCall),
            WaitStatus::Continued(_) | WaitStatus::StillAlive => continue,
        });
    }
}

/// Takes a process over that has just stopped for the first time.
pub(crate) fn take_over(pid: Pid) -> io::Result<()> {
    let options = Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEEXIT
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_EXITKILL;
    Ok(ptrace::setoptions(pid, options)?)
}

/// How a thread is to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Go {
    /// At full speed.
    On,
    /// For one instruction.
    Step,
    /// To the next beginning or end of a system call.
    ToSystemCall,
}

/// Lets a thread go on, with a signal if there is one.
pub(crate) fn resume(tid: Pid, go: Go, signal: Option<i32>) -> io::Result<()> {
    let signal = signal.and_then(|number| Signal::try_from(number).ok());
    let result = match go {
        Go::On => ptrace::cont(tid, signal),
        Go::Step => ptrace::step(tid, signal),
        Go::ToSystemCall => ptrace::syscall(tid, signal),
    };
    match result {
        // It was killed meanwhile, and will be waited for.
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Tells a thread that runs, or waits for something, to stop; whether it is still there.
#[allow(unsafe_code, reason = "tgkill has no safe wrapper")]
pub(crate) fn call(process: Pid, tid: Pid) -> bool {
    // SAFETY: a system call without pointers.
    let result =
        unsafe { libc::syscall(libc::SYS_tgkill, process.as_raw(), tid.as_raw(), libc::SIGSTOP) };
    result == 0
}

/// Ends a process and reaps it, however it has stopped.
pub(crate) fn end(leader: Pid) {
    // What is gone cannot be killed, and need not be.
    let _ = nix::sys::signal::kill(leader, Signal::SIGKILL);
    while let Ok((tid, stop)) = wait() {
        match stop {
            Stop::Ended(_) if tid == leader => return,
            Stop::Ended(_) => {}
            _ => {
                let _ = resume(tid, Go::On, None);
            }
        }
    }
}

/// The registers of a thread that has stopped.
pub(crate) fn registers(tid: Pid) -> io::Result<Registers> {
    Ok(ptrace::getregs(tid)?)
}

/// Sets the registers of a thread that has stopped.
pub(crate) fn set_registers(tid: Pid, registers: &Registers) -> io::Result<()> {
    Ok(ptrace::setregs(tid, *registers)?)
}

/// The address of the fault that a thread has stopped for, and the signal's code.
#[allow(unsafe_code, reason = "a union of the kernel's")]
pub(crate) fn fault(tid: Pid) -> (u64, i32) {
    ptrace::getsiginfo(tid).map_or((0, 0), |info| {
        // SAFETY: the field is there for every signal, even if it means nothing.
        let address = unsafe { info.si_addr() } as u64;
        (address, info.si_code)
    })
}

/// What a debug register looks out for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// Writes.
    Writes,
    /// Reads and writes.
    All,
    /// An instruction.
    Execution,
}

/// How many debug registers there are.
pub(crate) const N_DEBUG_REGISTERS: usize = 4;

/// Sets a thread's debug registers: each an address of eight aligned bytes, or of an instruction.
pub(crate) fn set_debug_registers(
    tid: Pid,
    slots: &[Option<(u64, Watched)>; N_DEBUG_REGISTERS],
) -> io::Result<()> {
    // Off first: the kernel refuses addresses that do not fit what is watched for.
    write_debug(tid, 7, 0)?;
    let mut control = 0_u64;
    for (number, slot) in slots.iter().enumerate() {
        let Some((address, watched)) = slot else { continue };
        write_debug(tid, number, *address)?;
        // Two bits for the kind and two for the length: 10 is eight bytes.
        let bits = match watched {
            Watched::Execution => 0b0000,
            Watched::Writes => 0b1001,
            Watched::All => 0b1011,
        };
        control |= 1 << (2 * number) | bits << (16 + 4 * number);
    }
    write_debug(tid, 7, control)
}

/// Which debug registers have met what they looked out for; forgets it.
pub(crate) fn take_debug_status(tid: Pid) -> io::Result<u64> {
    let status = ptrace::read_user(tid, debug_offset(6) as ptrace::AddressType)? as u64;
    write_debug(tid, 6, 0)?;
    Ok(status)
}

fn write_debug(tid: Pid, number: usize, value: u64) -> io::Result<()> {
    Ok(ptrace::write_user(tid, debug_offset(number) as ptrace::AddressType, value as i64)?)
}

fn debug_offset(number: usize) -> usize {
    std::mem::offset_of!(libc::user, u_debugreg) + 8 * number
}

/// The memory of a process that has stopped.
#[derive(Debug)]
pub(crate) struct Memory {
    file: File,
}

impl Memory {
    /// Opens it.
    pub(crate) fn open(pid: Pid) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(format!("/proc/{pid}/mem"))?;
        Ok(Self { file })
    }

    /// Reads all of these bytes, or says that they are not there.
    pub(crate) fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.file.read_exact_at(into, address).is_ok()
    }

    /// Writes, whatever the protection is.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> bool {
        self.file.write_all_at(bytes, address).is_ok()
    }

    /// A number of up to eight bytes.
    pub(crate) fn number(&self, address: u64, n_bytes: usize) -> Option<u64> {
        let mut bytes = [0; 8];
        let n = n_bytes.min(8);
        self.read(address, &mut bytes[..n]).then(|| u64::from_le_bytes(bytes))
    }
}

impl unwind::Memory for Memory {
    fn number(&self, address: u64, n_bytes: usize) -> Option<u64> {
        self.number(address, n_bytes)
    }
}
