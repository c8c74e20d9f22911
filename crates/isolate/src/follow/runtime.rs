//! Raddle's own library, in which nothing is ever suppressed.
//!
//! It keeps the program's order, so it has to do what it would have done. What it gives back to
//! the program is suppressed if it was made of something suppressed.

use std::io;

use nix::unistd::Pid;

use super::Follower;
use super::thread::FastCall;
use crate::code::{KEPT, RESULTS};
use crate::frame::{Frame, RSP};
use crate::shadow::Shadow;
use crate::tracee::{self, Registers};

impl Follower {
    /// A suppressed word was touched in raddle's own library, by an atomic operation most
    /// often: what that gives back is suppressed.
    pub(super) fn pass_runtime(&mut self, tid: Pid, registers: &Registers) -> io::Result<()> {
        let frames = self.frames(registers);
        let caller = frames.iter().find(|frame| self.images.is_own(frame.pc()));
        if let Some((return_to, rsp)) = caller.and_then(|f| Some((f.pc(), f.get(RSP)?))) {
            let name = self
                .functions
                .before(&self.images, return_to)
                .and_then(|call| self.functions.callee(&self.images, &call).name);
            let stores = name.is_some_and(|name| name.ends_with("_store"));
            let thread = self.thread(tid);
            let shadow =
                thread.overs.last().map_or_else(Shadow::default, |over| over.shadow.clone());
            thread.overs.retain(|over| over.rsp > rsp);
            let over = FastCall::new(return_to, rsp, shadow);
            thread.overs.push(FastCall { spoils_result: !stores, is_opaque: true, ..over });
        }
        Ok(())
    }

    /// In raddle's own library nothing is suppressed; what comes out of it may be.
    pub(super) fn leave_runtime(&mut self, tid: Pid, registers: &mut Registers) -> io::Result<()> {
        let frames = self.frames(registers);
        let spoils_result = self.thread(tid).shadow.registers() & RESULTS != 0;
        let is_program = |frame: &&Frame| {
            let name = self.images.function(frame.pc()).and_then(|bounds| bounds.name);
            self.images.is_own(frame.pc()) && name != Some("_start")
        };
        let caller = frames.iter().find(is_program);
        if caller.is_none() && spoils_result {
            // A thread's first function has returned, with something suppressed.
            registers.rax = 0;
            tracee::set_registers(tid, registers)?;
        }
        let place = caller.and_then(|frame| Some((frame.pc(), frame.get(RSP)?)));
        let thread = self.thread(tid);
        let mut shadow = std::mem::take(&mut thread.shadow);
        if let Some((return_to, rsp)) = place {
            if let Some(over) = thread.overs.last_mut().filter(|over| over.rsp == rsp) {
                over.spoils_result |= spoils_result;
                return Ok(());
            }
            shadow.forget(!KEPT);
            let over = FastCall::new(return_to, rsp, shadow);
            thread.overs.push(FastCall { spoils_result, is_opaque: true, ..over });
        }
        Ok(())
    }
}
