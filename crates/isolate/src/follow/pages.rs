//! Protected pages, for suppressed words that no debug register is left for.
//!
//! The target changes the protection itself, by a system call that it is lent an instruction
//! for. Who touches such a page stops before its instruction, is let through all of them, and
//! stepped. The kernel cannot be stopped so: system calls are put off until pages are open.

use std::io;

use nix::unistd::Pid;
use rustc_hash::FxHashSet;

use super::thread::SystemCall;
use super::{Follower, N_DATA, PAGE};
use crate::tracee::{self, Go, N_DEBUG_REGISTERS, Registers, Stop};

/// The kernel's code for a fault by protection.
const SEGV_ACCERR: i32 = 2;

impl Follower {
    pub(super) fn is_protection(&self, tid: Pid) -> bool {
        let (address, _) = tracee::fault(tid);
        self.protected.contains(&(address / PAGE))
            || self.protected.contains(&((address + 63) / PAGE))
    }

    pub(super) fn was_protection(&self, tid: Pid) -> bool {
        let (address, code) = tracee::fault(tid);
        code == SEGV_ACCERR && self.ever_protected.contains(&(address / PAGE))
    }

    /// Protects the pages of suppressed words for which there is no debug register.
    pub(super) fn protect(&mut self, tid: Pid) -> io::Result<()> {
        let room = N_DATA.saturating_sub(self.words.len());
        let unwatched = |word: &u64| !self.words.iter().any(|(watched, _)| watched == word);
        let words: Vec<u64> = self.bytes.words().filter(unwatched).collect();
        let mut wanted: FxHashSet<u64> = FxHashSet::default();
        if words.len() > room {
            // Pages of the stack are touched all the time, so its words come first.
            let rsp = tracee::registers(tid)?.rsp;
            let is_stack = |word: &&u64| (rsp..rsp + (8 << 20)).contains(*word);
            let mut sorted: Vec<u64> = words.iter().filter(is_stack).copied().collect();
            sorted.extend(words.iter().filter(|word| !is_stack(word)));
            wanted.extend(sorted[room..].iter().map(|word| word / PAGE));
        }
        let gone: Vec<u64> = self.protected.difference(&wanted).copied().collect();
        for page in gone {
            self.set_protection(tid, page, true)?;
            self.protected.remove(&page);
        }
        let new: Vec<u64> = wanted.difference(&self.protected).copied().collect();
        for page in new {
            if self.set_protection(tid, page, false)? {
                self.protected.insert(page);
                self.ever_protected.insert(page);
            }
        }
        Ok(())
    }

    /// Lets everybody at all pages until [`Follower::protect`] is called again.
    pub(super) fn lift(&mut self, tid: Pid) -> io::Result<()> {
        let pages: Vec<u64> = self.protected.drain().collect();
        for &page in &pages {
            self.set_protection(tid, page, true)?;
        }
        Ok(())
    }

    /// Lets the target change the protection of one of its pages; whether it could.
    fn set_protection(&mut self, tid: Pid, page: u64, open: bool) -> io::Result<bool> {
        let Some(instruction) = self.borrowed_system_call() else { return Ok(false) };
        let saved = tracee::registers(tid)?;
        let protection = if open { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_NONE };
        let mut registers = saved;
        registers.rip = instruction;
        registers.rax = libc::SYS_mprotect as u64;
        registers.orig_rax = u64::MAX;
        registers.rdi = page * PAGE;
        registers.rsi = PAGE;
        registers.rdx = protection as u64;
        tracee::set_registers(tid, &registers)?;
        tracee::set_debug_registers(tid, &[None; N_DEBUG_REGISTERS])?;
        self.thread(tid).armed = Some([None; N_DEBUG_REGISTERS]);
        tracee::resume(tid, Go::Step, None)?;
        loop {
            let next = tracee::wait()?;
            match next {
                (stopped, Stop::Signal(libc::SIGTRAP)) if stopped == tid => break,
                (stopped, Stop::Signal(libc::SIGSTOP)) if stopped == tid => {
                    self.thread(tid).is_called = false;
                    tracee::resume(tid, Go::Step, None)?;
                }
                (stopped, stop) => {
                    // It has its turn later.
                    self.queue.push_back((stopped, stop));
                    if stopped == tid {
                        // If it is still there, as it was.
                        let _ = tracee::set_registers(tid, &saved);
                        return Ok(false);
                    }
                }
            }
        }
        let result = tracee::registers(tid)?.rax;
        tracee::set_registers(tid, &saved)?;
        Ok(result == 0)
    }

    fn borrowed_system_call(&mut self) -> Option<u64> {
        if self.syscall.is_none() {
            let modules = self.images.modules();
            let libc = modules.iter().find(|module| module.path.contains("libc.so"))?;
            let mut at = libc.low;
            while at < libc.high && self.syscall.is_none() {
                let code = self.images.code(at, 1 << 20).unwrap_or(&[]);
                let is_function = |at: u64| {
                    let function = self.functions.at(&self.images, at);
                    function.is_some_and(|function| function.index(at).is_some())
                };
                self.syscall = code
                    .windows(2)
                    .enumerate()
                    .filter(|(_, bytes)| *bytes == [0x0f, 0x05])
                    .map(|(offset, _)| at + offset as u64)
                    .find(|&at| is_function(at));
                at += if code.is_empty() { PAGE } else { code.len() as u64 };
            }
        }
        self.syscall
    }

    /// The kernel cannot access protected pages for the target, and in the middle of a system
    /// call no other one can be borrowed: it is put off until the pages are open.
    pub(super) fn system_call(&mut self, tid: Pid) -> io::Result<()> {
        let state = self.thread(tid).system_call.clone();
        match state {
            SystemCall::None if self.protected.is_empty() => {
                self.thread(tid).system_call = SystemCall::Made;
                tracee::resume(tid, Go::ToSystemCall, None)
            }
            SystemCall::None => {
                let saved = tracee::registers(tid)?;
                tracee::set_registers(tid, &Registers { orig_rax: u64::MAX, ..saved })?;
                self.thread(tid).system_call = SystemCall::PutOff(Box::new(saved));
                tracee::resume(tid, Go::ToSystemCall, None)
            }
            SystemCall::PutOff(saved) => {
                self.lift(tid)?;
                let rip = saved.rip - 2;
                let again = Registers { rip, rax: saved.orig_rax, orig_rax: u64::MAX, ..*saved };
                tracee::set_registers(tid, &again)?;
                self.thread(tid).system_call = SystemCall::None;
                tracee::resume(tid, Go::ToSystemCall, None)
            }
            SystemCall::Made => {
                self.thread(tid).system_call = SystemCall::None;
                self.go_on(tid, None)
            }
        }
    }
}
