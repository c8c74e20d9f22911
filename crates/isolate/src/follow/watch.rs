//! Debug registers: what they are set to, and what they tell.
//!
//! One stops a thread behind the instruction that has touched its word, so which one that was
//! has to be found out, and its address may be gone with what it loaded.

use std::io;

use iced_x86::{Code, FlowControl, Instruction};
use nix::unistd::Pid;

use super::thread::Thread;
use super::{Follower, N_DATA, PAGE, READS_MAX};
use crate::code::{RESULT, writes};
use crate::failure::Death;
use crate::flow;
use crate::frame::{self, RSP};
use crate::origin::Location;
use crate::tracee::{self, Go, N_DEBUG_REGISTERS, Registers, Stop, Watched};

/// The kernel's code for a trap that the program has made itself.
const SI_KERNEL_TRAP: i32 = 0x80;

impl Follower {
    /// A step, a debug register, or the program's own doing.
    pub(super) fn trap(&mut self, tid: Pid) -> io::Result<()> {
        let status = tracee::take_debug_status(tid)?;
        let mut registers = tracee::registers(tid)?;
        self.refresh(registers.rip);
        let armed = self.thread(tid).armed.unwrap_or_default();
        let is_hit = |slot: usize| status >> slot & 1 == 1 && armed[slot].is_some();
        let is_ours = status & 0xf != 0 || self.thread(tid).is_stepping;
        if !is_ours {
            let (address, code) = tracee::fault(tid);
            if code == SI_KERNEL_TRAP {
                let number = libc::SIGTRAP;
                self.note_failure(tid, Death::Signal { number, address, code });
            }
            return tracee::resume(tid, Go::On, Some(libc::SIGTRAP));
        }
        if is_hit(N_DATA) && Some(registers.rip) == self.panic {
            self.note_failure(tid, Death::Own);
        }
        self.returned(tid, &registers);
        for slot in (0..N_DATA).filter(|&slot| is_hit(slot)) {
            if let Some((pc, Watched::Execution)) = armed[slot] {
                self.probe(tid, &registers, pc);
            } else if let Some((word, _)) = armed[slot] {
                self.touched(tid, &mut registers, word)?;
            }
        }
        self.go_on(tid, None)
    }

    /// Notes what a load is about to load.
    fn probe(&mut self, tid: Pid, registers: &Registers, pc: u64) {
        let Some(load) = self.functions.instruction(&self.images, pc) else { return };
        let frame = frame::innermost(registers);
        let touched = flow::touched(&load, &frame, &mut self.factory);
        if let Some((address, n_bytes, _)) = touched.iter().find(|(_, _, writes)| !writes) {
            let thread = self.thread(tid).number;
            let location = Location { address: *address, n_bytes: *n_bytes };
            self.report.probed.insert((thread, pc), location);
        }
    }

    /// A debug register tells that a word was touched by the instruction before.
    pub(super) fn touched(
        &mut self,
        tid: Pid,
        registers: &mut Registers,
        word: u64,
    ) -> io::Result<()> {
        let instruction = self.culprit(registers, word);
        let mut frame = frame::innermost(registers);
        if let Some(instruction) = &instruction {
            // As it was before.
            let moved = i64::from(instruction.stack_pointer_increment());
            frame.set(RSP, Some(registers.rsp.wrapping_sub(moved as u64)));
        }
        let touched = instruction
            .map(|instruction| flow::touched(&instruction, &frame, &mut self.factory))
            .unwrap_or_default();
        let in_word = |&&(address, n_bytes, _): &&(u64, u64, bool)| {
            address < word + 8 && word < address.saturating_add(n_bytes)
        };
        let exact = touched.iter().find(in_word).copied();
        if let Some(slot) = self.words.iter().position(|(watched, _)| *watched == word) {
            let is_suppressed = self.note_hit(tid, registers, instruction, slot, exact)?;
            if is_suppressed {
                return Ok(());
            }
        }
        let thread = self.thread(tid);
        if thread.is_stepping || thread.overs.last().is_some_and(|over| over.is_opaque) {
            // It was looked at before it was executed.
            return Ok(());
        }
        let mask = self.bytes.get(word, 8);
        if mask == 0 {
            return Ok(());
        }
        if self.images.is_runtime(registers.rip) {
            return self.pass_runtime(tid, registers);
        }
        let Some(instruction) = instruction else { return Ok(()) };
        match instruction.flow_control() {
            // A return address has its old value back.
            FlowControl::Return => Ok(()),
            FlowControl::Call => {
                self.bytes.fill(registers.rsp, 8, false);
                Ok(())
            }
            FlowControl::IndirectCall if exact.is_none_or(|(_, _, writes)| !writes) => {
                // Through a suppressed pointer: it is not made.
                registers.rip = self.memory().number(registers.rsp, 8).unwrap_or(registers.rip);
                registers.rsp += 8;
                tracee::set_registers(tid, registers)?;
                let thread = self.thread(tid);
                thread.shadow.mark(RESULT);
                thread.is_stepping = true;
                self.report.n_skipped += 1;
                Ok(())
            }
            _ => {
                let mut shadow = self.thread(tid).shadow.clone();
                if exact.is_some() {
                    let (bytes, factory) = (&mut self.bytes, &mut self.factory);
                    flow::flow(&instruction, &frame, &mut shadow, bytes, factory);
                } else {
                    // The address is gone with the load, so it is taken for suppressed.
                    let used = self.factory.info(&instruction).used_registers().iter();
                    for used in used.filter(|used| writes(used.access())) {
                        shadow.set(used.register(), u64::MAX);
                    }
                    shadow.flags |= instruction.rflags_modified();
                }
                let thread = self.thread(tid);
                thread.is_stepping = !shadow.is_clean();
                thread.shadow = shadow;
                Ok(())
            }
        }
    }

    /// The instruction that has just touched a word.
    fn culprit(&mut self, registers: &Registers, word: u64) -> Option<Instruction> {
        let rip = registers.rip;
        let near = |address: u64| address & !7 == word;
        let (images, functions, memory) = (&self.images, &self.functions, &self.memory);
        let memory = memory.as_ref()?;
        // A return, or a call that has pushed or read its address.
        if near(registers.rsp.wrapping_sub(8)) && memory.number(registers.rsp - 8, 8) == Some(rip) {
            let mut returned = Instruction::new();
            returned.set_code(Code::Retnq);
            return Some(returned);
        }
        let pushed = memory.number(registers.rsp, 8).unwrap_or(0);
        if let Some(call) = functions.before(images, pushed) {
            let is_direct =
                call.flow_control() == FlowControl::Call && call.near_branch_target() == rip;
            let is_indirect = call.flow_control() == FlowControl::IndirectCall
                && images.function(rip).is_none_or(|bounds| bounds.start == rip);
            if is_indirect || is_direct && near(registers.rsp) {
                return Some(call);
            }
        }
        // One that repeats itself has not come to its end.
        if let Some(here) = functions.instruction(images, rip)
            && here.has_rep_prefix() | here.has_repne_prefix()
            && here.is_string_instruction()
        {
            return Some(here);
        }
        *self.before.entry(rip).or_insert_with(|| functions.before(images, rip))
    }

    /// Sets a thread's debug registers to what is to be watched now.
    pub(super) fn arm(&mut self, tid: Pid) -> io::Result<()> {
        let reads = self.job.with_reads && self.report.hits.len() <= READS_MAX;
        let how = if reads { Watched::All } else { Watched::Writes };
        let mut slots = [None; N_DEBUG_REGISTERS];
        let mut n = self.words.len();
        for (slot, &(word, _)) in slots.iter_mut().zip(&self.words) {
            *slot = Some((word, how));
        }
        for &pc in self.job.probes.iter().take(N_DATA - n) {
            slots[n] = Some((pc, Watched::Execution));
            n += 1;
        }
        for word in self.bytes.words().filter(|word| !self.protected.contains(&(word / PAGE))) {
            if let Some(slot) = slots[..n].iter_mut().flatten().find(|slot| slot.0 == word) {
                slot.1 = Watched::All;
            } else if n < N_DATA {
                slots[n] = Some((word, Watched::All));
                n += 1;
            }
        }
        let thread = self.thread(tid);
        let back = thread.overs.last().map(|over| over.return_to);
        slots[N_DATA] = back.or(self.panic).map(|pc| (pc, Watched::Execution));
        if self.thread(tid).armed != Some(slots) {
            tracee::set_debug_registers(tid, &slots)?;
            self.thread(tid).armed = Some(slots);
        }
        Ok(())
    }

    /// Lets all other threads watch what this one does. They wait, but not for us, so they
    /// have to be stopped for it.
    pub(super) fn arm_others(&mut self, tid: Pid) -> io::Result<()> {
        if self.job.points.is_empty() || self.report.suppressed.is_empty() {
            // Nothing has changed since they were started.
            return Ok(());
        }
        let wanted = self.thread(tid).armed.unwrap_or_default();
        let is_behind = |(other, thread): (&i32, &Thread)| {
            let data =
                |slots: &[Option<(u64, Watched)>; N_DEBUG_REGISTERS]| slots[..N_DATA].to_vec();
            *other != tid.as_raw()
                && !thread.is_new
                && !thread.is_called
                && thread.armed.as_ref().map(data) != Some(data(&wanted))
        };
        let behind: Vec<i32> =
            self.threads.iter().filter(|thread| is_behind(*thread)).map(|(tid, _)| *tid).collect();
        for other in behind {
            let other = Pid::from_raw(other);
            if self.queue.iter().any(|(queued, _)| *queued == other) {
                // It has stopped already, and is armed when its turn comes.
                continue;
            }
            if !tracee::call(self.leader, other) {
                continue;
            }
            self.thread(other).is_called = true;
            loop {
                let (stopped, stop) = tracee::wait()?;
                if stopped == other && stop == Stop::Signal(libc::SIGSTOP) {
                    self.thread(other).is_called = false;
                    self.arm(other)?;
                    tracee::resume(other, self.speed(), None)?;
                    break;
                }
                self.queue.push_back((stopped, stop));
                if stopped == other {
                    // Something else came first.
                    break;
                }
            }
        }
        Ok(())
    }
}
