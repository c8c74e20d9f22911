//! Calls, while registers are suppressed.
//!
//! A call that is given nothing suppressed runs at full speed. Of others, those of the program's
//! own functions are followed, and those of a library or the kernel are not made. Callbacks into
//! raddle's library are made in any case, with another address if theirs is suppressed, since
//! schedules count them.
//!
//! Limits: which arguments an unknown function uses is guessed from which registers were set
//! for it.

use std::io;

use iced_x86::{FlowControl, Instruction, OpKind, Register};
use nix::unistd::Pid;

use super::Follower;
use super::thread::FastCall;
use crate::calls::{self, Callback};
use crate::code::{ARGUMENTS, KEPT, RESULT, RESULTS, bit, is_call, written};
use crate::flow;
use crate::frame::{self, Frame};
use crate::origin::Location;
use crate::shadow::Shadow;
use crate::tracee::{self, Registers};

/// What became of a call.
pub(super) enum Called {
    /// It was not made.
    Skipped,
    /// It is followed.
    Entered,
    /// It runs at full speed.
    FastCall,
}

impl Follower {
    /// A call, while registers are suppressed.
    pub(super) fn call(
        &mut self,
        tid: Pid,
        registers: &mut Registers,
        call: &Instruction,
        frame: &Frame,
    ) -> io::Result<Called> {
        let shadow = self.thread(tid).shadow.clone();
        let target_suppressed = call.flow_control() == FlowControl::IndirectCall
            && match call.op0_kind() {
                OpKind::Register => shadow.get(call.op0_register()) != 0,
                _ => self.is_used(tid, call, frame),
            };
        let next = call.next_ip();
        if target_suppressed {
            self.skip_call(tid, registers, next, None);
            return Ok(Called::Skipped);
        }
        let callee = self.functions.callee(&self.images, call);
        let entry = match (callee.entry, call.op0_kind()) {
            (Some(entry), _) => Some(entry),
            (None, OpKind::Register) => frame.value(call.op0_register()),
            (None, OpKind::Memory) => {
                let touched = flow::touched(call, frame, &mut self.factory);
                let read = touched.iter().find(|(_, _, writes)| !writes);
                read.and_then(|(address, ..)| self.memory().number(*address, 8))
            }
            _ => None,
        };
        let name = callee.name.or_else(|| {
            let bounds = self.images.function(entry?)?;
            bounds.name.map(str::to_owned)
        });
        let name = name.as_deref().unwrap_or("");
        let is_own =
            entry.is_some_and(|entry| self.images.is_own(entry)) && !name.starts_with("__tsan_");
        let given = shadow.registers() & ARGUMENTS & !1;
        if calls::is_exit(name) && given & bit(Register::RDI) != 0 {
            // How it ends is suppressed, not that it does.
            registers.rdi = 0;
            tracee::set_registers(tid, registers)?;
            self.thread(tid).shadow.forget(bit(Register::RDI));
            return self.call(tid, registers, call, &frame::innermost(registers));
        }
        let used = given
            & match calls::n_arguments(name) {
                Some(n) => calls::argument_registers(n),
                None => self.arguments(entry, call),
            };
        let mut over = FastCall::new(next, registers.rsp, shadow.clone());
        let is_callback = match calls::callback(name) {
            Some(callback) => {
                self.redirect(&callback, registers, &mut over, used);
                tracee::set_registers(tid, registers)?;
                true
            }
            None => false,
        };
        if used == 0 || is_callback {
            let thread = self.thread(tid);
            thread.overs.push(over);
            thread.shadow = Shadow::default();
            return Ok(Called::FastCall);
        }
        if is_own {
            return Ok(Called::Entered);
        }
        self.skip_call(tid, registers, next, Some((name, used)));
        Ok(Called::Skipped)
    }

    /// Prepares a callback, which gets another address if it is to have no effect. Steps are
    /// counted in callbacks, so they are made in any case.
    fn redirect(
        &self,
        callback: &Callback,
        registers: &mut Registers,
        over: &mut FastCall,
        used: u64,
    ) {
        over.is_opaque = true;
        let location = Location { address: registers.rdi, n_bytes: u64::from(callback.n_bytes) };
        let address_suppressed = over.shadow.get(Register::RDI) != 0;
        let value_suppressed = used & !bit(Register::RDI) != 0;
        let has_effect = !(address_suppressed || callback.is_atomic && value_suppressed);
        if callback.is_atomic && has_effect {
            let Location { address, n_bytes } = location;
            over.spoils_result = callback.reads && self.bytes.any(address, n_bytes);
            over.after = (callback.writes && !callback.reads).then_some((location, false));
        } else if callback.is_atomic {
            over.spoils_result = true;
            over.after = (callback.writes && !address_suppressed).then_some((location, true));
        }
        if !has_effect {
            registers.rdi = registers.rsp - 256;
        }
    }

    /// The registers that a function reads before it writes them; if it is not known, those
    /// that are set for it.
    fn arguments(&self, entry: Option<u64>, call: &Instruction) -> u64 {
        let function = entry.and_then(|entry| {
            let function = self.functions.at(&self.images, entry)?;
            (function.index(entry) == Some(function.entry())).then_some(function)
        });
        function.map_or_else(|| self.set_for(call), |function| function.arguments())
    }

    /// Does not make a call. What it would have written is suppressed as far as that is known.
    fn skip_call(
        &mut self,
        tid: Pid,
        registers: &mut Registers,
        next: u64,
        callee: Option<(&str, u64)>,
    ) {
        if let Some((name, used)) = callee
            && let Some(n) = calls::written(name, registers)
            && used & bit(Register::RDI) == 0
        {
            let n = if used & bit(Register::RDX) != 0 { 1 } else { n };
            self.bytes.fill(registers.rdi, n.min(1 << 16), true);
        }
        let thread = self.thread(tid);
        thread.shadow.forget(!KEPT);
        thread.shadow.mark(RESULT);
        registers.rip = next;
    }

    /// The argument registers that are set for a call: written since the call before.
    fn set_for(&self, call: &Instruction) -> u64 {
        let Some(function) = self.functions.at(&self.images, call.ip()) else { return ARGUMENTS };
        let Some(at) = function.index(call.ip()) else { return ARGUMENTS };
        let before = function.instructions()[..at].iter().rev().take(64);
        before.take_while(|i| !is_call(i)).fold(0, |set, i| set | written(i))
    }

    /// Ends the calls that have returned.
    pub(super) fn returned(&mut self, tid: Pid, registers: &Registers) {
        loop {
            let thread = self.thread(tid);
            let Some(over) = thread.overs.last() else { return };
            let is_back = registers.rip == over.return_to && registers.rsp == over.rsp;
            // By a jump over many frames, or an exception.
            let is_gone = registers.rsp > over.rsp;
            if !is_back && !is_gone {
                return;
            }
            let over = thread.overs.pop().expect("it was seen");
            let mut shadow = over.shadow;
            shadow.forget(!KEPT);
            if is_back {
                let results = thread.shadow.registers() & RESULTS;
                shadow.mark(if over.spoils_result { RESULT } else { results });
                if let Some((location, suppressed)) = over.after {
                    self.bytes.fill(location.address, location.n_bytes, suppressed);
                }
            }
            let thread = self.thread(tid);
            thread.is_stepping |= !shadow.is_clean();
            thread.shadow = shadow;
            self.prune(registers.rsp);
        }
    }

    /// Forgets what lies in frames that are gone.
    pub(super) fn prune(&mut self, rsp: u64) {
        if self.bytes.n_words() > 0 {
            self.bytes.forget(rsp.saturating_sub(1 << 20), rsp.saturating_sub(128));
        }
    }
}
