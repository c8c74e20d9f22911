//! Accesses to what is watched: noted, and suppressed if they are to be.
//!
//! A debug register stops behind a write, so it has happened. To suppress it, the old bytes are put
//! back and marked. Where the value came from is looked at now, while registers still tell.

use std::io;

use iced_x86::Instruction;
use nix::unistd::Pid;
use raddle_trace::id::ThreadId;

use super::job::{Hit, Pick, Point, Suppressed};
use super::{Follower, READS_MAX};
use crate::failure;
use crate::frame::{self, Frame};
use crate::origin::Location;
use crate::tracee::Registers;

/// How far behind its callback an access may be.
const CALLBACK_BYTES_MAX: u64 = 64;

impl Follower {
    /// Notes an access to a word that is watched, and suppresses it if it is to be.
    pub(super) fn note_hit(
        &mut self,
        tid: Pid,
        registers: &Registers,
        instruction: Option<Instruction>,
        slot: usize,
        exact: Option<(u64, u64, bool)>,
    ) -> io::Result<bool> {
        let (word, before) = self.words[slot];
        let after = self.memory().number(word, 8).unwrap_or(before);
        let writes = match exact {
            Some((_, _, writes)) => writes,
            None => after != before || instruction.is_some_and(|i| failure::is_save(&i)),
        };
        if !writes && (!self.job.with_reads || self.report.hits.len() > READS_MAX) {
            return Ok(false);
        }
        let (address, n_bytes) =
            exact.map_or((word, 8), |(address, n_bytes, _)| (address, n_bytes));
        let pc = instruction.map_or(registers.rip, |instruction| match instruction.ip() {
            0 => registers.rip,
            ip => ip,
        });
        let callers = match self.images.is_own(pc) {
            true => Vec::new(),
            false => self.frames(registers).iter().skip(1).map(Frame::pc).collect(),
        };
        let thread = ThreadId(self.thread(tid).number);
        let location = Location { address, n_bytes };
        let is_save = instruction.is_some_and(|instruction| failure::is_save(&instruction));
        let is_exact = exact.is_some();
        let hit =
            Hit { thread, pc, callers, location, is_exact, writes, word, before, after, is_save };
        self.words[slot].1 = after;
        if self.job.watches.iter().any(|watch| watch.overlaps(word, 8)) {
            self.report.hits.push(hit.clone());
        }
        let mut is_suppressed = false;
        if writes {
            for point in 0..self.job.points.len() {
                if self.is_picked(point, &hit) {
                    self.suppress(point, &hit, registers);
                    is_suppressed = true;
                }
            }
        }
        if is_suppressed
            && self.job.with_reads
            && (0..self.job.points.len()).all(|point| self.is_met(point))
        {
            // What comes now is no longer the execution that is asked about.
            self.words.clear();
        }
        Ok(is_suppressed)
    }

    /// Whether a point has been suppressed, with all its parts.
    fn is_met(&self, point: usize) -> bool {
        let count = self.counts[point];
        match &self.job.points[point].pick {
            Pick::Numbers(numbers) => numbers.iter().all(|number| *number < count),
            // A library call may have more parts.
            Pick::Event { nth, .. } => {
                let own = |s: &Suppressed| s.point == point && s.hit.callers.is_empty();
                *nth < count && self.report.suppressed.iter().any(own)
            }
        }
    }

    /// Whether a write is the one that a point means.
    fn is_picked(&mut self, point: usize, hit: &Hit) -> bool {
        let Point { location, pick } = &self.job.points[point];
        if !hit.is_of(location) {
            return false;
        }
        match pick {
            Pick::Numbers(numbers) => {
                let number = self.counts[point];
                self.counts[point] += 1;
                numbers.contains(&number)
            }
            Pick::Event { thread, pc, nth } => {
                let is_behind = (*pc..pc + CALLBACK_BYTES_MAX).contains(&hit.pc);
                let is_within = hit.callers.contains(pc);
                if hit.thread.0 != *thread || !is_behind && !is_within {
                    return false;
                }
                let number = self.counts[point];
                // A library call touches its range in parts, which are one.
                let is_part = is_within
                    && self
                        .report
                        .suppressed
                        .iter()
                        .any(|other| other.point == point && other.hit.callers == hit.callers);
                if !is_part {
                    self.counts[point] += 1;
                }
                is_part || number == *nth
            }
        }
    }

    fn suppress(&mut self, point: usize, hit: &Hit, registers: &Registers) {
        let mut at_store = frame::innermost(registers);
        at_store.set(frame::RIP, Some(hit.pc));
        let mut frames = self.frames(registers);
        let callers = frames.iter().skip(1).map(Frame::pc).collect();
        frames[0] = at_store;
        let stopped = self.stopped(&frames);
        let place = stopped.place(0).filter(|_| self.images.is_own(hit.pc));
        let sources = place.as_ref().map(|place| stopped.of_stored(place)).unwrap_or_default();
        let strays = place.is_some_and(|place| stopped.strays(&place, hit.location));
        // What it has written is taken back.
        let location = &hit.location;
        let old = hit.before.to_le_bytes();
        for byte in location.address..location.address + location.n_bytes {
            if (hit.word..hit.word + 8).contains(&byte) {
                self.memory().write(byte, &old[(byte - hit.word) as usize..][..1]);
                self.bytes.fill(byte, 1, true);
            }
        }
        for (word, value) in &mut self.words {
            if *word == hit.word {
                *value = hit.before;
            }
        }
        let n_hits = self.report.hits.len();
        self.report.suppressed.push(Suppressed {
            point,
            hit: hit.clone(),
            sources,
            strays,
            n_hits,
            callers,
        });
    }
}
