//! A thread whose registers are suppressed, instruction by instruction.
//!
//! What uses something suppressed is passed over ([`flow`] tells what becomes of what it would
//! have written); all else is executed alone. The thread goes at full speed again as soon as
//! nothing that is suppressed in its registers is still needed.

use std::io;

use iced_x86::{FlowControl, Instruction};
use nix::unistd::Pid;

use super::Follower;
use super::call::Called;
use crate::code::{FLAGS, RESULT, is_call};
use crate::flow::{self, Treatment};
use crate::frame::{self, Frame};
use crate::tracee::{self, Go, Registers};

impl Follower {
    /// Lets a thread go on: at full speed if it may, else by the next instruction that is to
    /// be executed.
    pub(super) fn go_on(&mut self, tid: Pid, signal: Option<i32>) -> io::Result<()> {
        if self.thread(tid).is_stepping {
            if self.n_steps_left == 0 {
                let note =
                    "suppressed data is touched all the time; it was given up after so many steps";
                self.report.note(note.to_owned());
                self.stop_suppression(tid)?;
                return tracee::resume(tid, Go::On, signal);
            }
            let mut registers = tracee::registers(tid)?;
            let before = registers;
            let steps = self.pass_over(tid, &mut registers)?;
            if registers.rip != before.rip || registers.rsp != before.rsp {
                tracee::set_registers(tid, &registers)?;
            }
            if steps {
                self.report.n_stepped += 1;
                self.n_steps_left -= 1;
                self.arm(tid)?;
                return tracee::resume(tid, Go::Step, signal);
            }
        }
        self.thread(tid).is_stepping = false;
        self.protect(tid)?;
        self.arm(tid)?;
        self.arm_others(tid)?;
        tracee::resume(tid, self.speed(), signal)
    }

    /// How a thread goes on that is not stepped.
    pub(super) fn speed(&self) -> Go {
        if self.protected.is_empty() { Go::On } else { Go::ToSystemCall }
    }

    /// Passes over what is suppressed, and stops before an instruction that is to be executed.
    /// Whether it is to be executed alone.
    fn pass_over(&mut self, tid: Pid, registers: &mut Registers) -> io::Result<bool> {
        loop {
            let rip = registers.rip;
            self.refresh(rip);
            let mut shadow = self.thread(tid).shadow.clone();
            // Who is let through a protected page is stepped once, whatever its registers.
            let is_let_through = std::mem::take(&mut self.thread(tid).is_let_through);
            let function = self.functions.at(&self.images, rip);
            let place = function.as_ref().and_then(|function| function.index(rip));
            if let (Some(function), Some(at)) = (&function, place) {
                shadow.forget(!function.live(at) & (FLAGS | (FLAGS - 1)));
                self.thread(tid).shadow = shadow.clone();
            }
            if shadow.is_clean() && !is_let_through {
                return Ok(false);
            }
            if shadow.is_clean()
                && let Some(instruction) = self.functions.instruction(&self.images, rip)
            {
                let frame = frame::innermost(registers);
                if !self.is_used(tid, &instruction, &frame) {
                    if is_call(&instruction) {
                        self.bytes.fill(registers.rsp - 8, 8, false);
                    } else {
                        let thread = self.threads.get_mut(&tid.as_raw()).expect("it is followed");
                        let (bytes, factory) = (&mut self.bytes, &mut self.factory);
                        flow::flow(&instruction, &frame, &mut thread.shadow, bytes, factory);
                    }
                    return Ok(true);
                }
            }
            if self.images.is_runtime(rip) {
                self.leave_runtime(tid, registers)?;
                return Ok(false);
            }
            let Some(instruction) = self.functions.instruction(&self.images, rip) else {
                self.note_unknown(rip);
                return Ok(true);
            };
            let frame = frame::innermost(registers);
            match instruction.flow_control() {
                FlowControl::ConditionalBranch => {
                    if !self.is_used(tid, &instruction, &frame) {
                        return Ok(true);
                    }
                    self.report.n_skipped += 1;
                    self.skip_branch(tid, registers, function.as_deref(), place)?;
                }
                FlowControl::IndirectBranch if self.is_used(tid, &instruction, &frame) => {
                    self.report.n_skipped += 1;
                    self.skip_branch(tid, registers, function.as_deref(), place)?;
                }
                // System calls have this flow too.
                FlowControl::Call | FlowControl::IndirectCall => {
                    match self.call(tid, registers, &instruction, &frame)? {
                        Called::Skipped => self.report.n_skipped += 1,
                        Called::Entered => return Ok(true),
                        Called::FastCall => return Ok(false),
                    }
                }
                FlowControl::Return => {
                    self.bytes.fill(registers.rsp, 8, false);
                    self.prune(registers.rsp);
                    return Ok(true);
                }
                _ if instruction.is_string_instruction() => {
                    if self.string(tid, registers, &instruction, &frame)? {
                        return Ok(true);
                    }
                    self.report.n_skipped += 1;
                }
                _ => {
                    let thread = self.threads.get_mut(&tid.as_raw()).expect("it is followed");
                    let (bytes, factory) = (&mut self.bytes, &mut self.factory);
                    let fate = flow::flow(&instruction, &frame, &mut thread.shadow, bytes, factory);
                    if fate != Treatment::Skipped {
                        return Ok(true);
                    }
                    registers.rip = instruction.next_ip();
                    self.report.n_skipped += 1;
                }
            }
        }
    }

    pub(super) fn is_used(&mut self, tid: Pid, instruction: &Instruction, frame: &Frame) -> bool {
        let shadow = self.thread(tid).shadow.clone();
        flow::uses_suppressed(instruction, frame, &shadow, &self.bytes, &mut self.factory)
    }

    fn note_unknown(&mut self, address: u64) {
        let note =
            format!("the instruction at {address:#x} cannot be decoded; it was executed as it is");
        if self.report.notes.len() < 20 {
            self.report.note(note);
        }
    }

    /// A branch on something suppressed: goes on where its ways meet; what was to be written on
    /// the way is suppressed.
    fn skip_branch(
        &mut self,
        tid: Pid,
        registers: &mut Registers,
        function: Option<&crate::code::Function>,
        place: Option<usize>,
    ) -> io::Result<()> {
        let (Some(function), Some(at)) = (function, place) else {
            return self.leave(tid, registers);
        };
        let frame = frame::innermost(registers);
        let thread = self.threads.get_mut(&tid.as_raw()).expect("it is followed");
        let (bytes, factory) = (&mut self.bytes, &mut self.factory);
        let meet = flow::pass_branch(function, at, &frame, &mut thread.shadow, bytes, factory);
        match meet {
            Some(address) => {
                registers.rip = address;
                Ok(())
            }
            None => self.leave(tid, registers),
        }
    }

    /// Leaves a function without executing the rest of it.
    fn leave(&mut self, tid: Pid, registers: &mut Registers) -> io::Result<()> {
        let frame = frame::innermost(registers);
        let Some(caller) = self.images.caller(&frame, self.memory()) else {
            return Err(io::Error::other("a function has no caller to go back to"));
        };
        for number in 0..=16 {
            if let Some(value) = caller.get(number) {
                frame::set(registers, number, value);
            }
        }
        let thread = self.thread(tid);
        thread.shadow.forget(u64::MAX);
        thread.shadow.mark(RESULT);
        self.returned(tid, registers);
        let thread = self.thread(tid);
        thread.shadow.mark(RESULT);
        thread.is_stepping = true;
        tracee::set_registers(tid, registers)
    }
}
