//! From records to a schedule.

use raddle_trace::control::Policy;
use raddle_trace::event::Batch;
use raddle_trace::id::{Pc, Site, ThreadId};
use raddle_trace::record::{Kind, Record};
use raddle_trace::run::Run;
use raddle_trace::schedule::{Schedule, Step};

/// Collects who ran when.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    steps: Vec<Part>,
    /// Who has the turn; none before the first switch.
    running: Option<ThreadId>,
    /// A switch whose payload is still to come: the next thread, and where the one before stopped.
    pending: Option<(ThreadId, Pc)>,
}

/// A step whose site is not resolved yet: the modules are known in the end.
#[derive(Clone, Copy, Debug)]
enum Part {
    Run { thread: ThreadId, count: u64, pc: Pc },
    Choose(u32),
}

impl Recorder {
    /// As [`Recorder::push_all`]. Plain records say nothing about the schedule.
    pub fn push_batch(&mut self, batch: &Batch<'_>) {
        if !batch.is_plain || self.pending.is_some() {
            self.push_all(batch.records);
        }
    }

    /// Takes the next records of the stream.
    pub fn push_all(&mut self, records: &[Record]) {
        // Most records say nothing about the schedule, and this is done for every one.
        const SWITCH: u64 = Kind::Switch as u64;
        const CHOICE: u64 = Kind::Choice as u64;
        for group in records.chunks(64) {
            let is_told = |record: &Record| matches!(record.head >> 56, SWITCH | CHOICE);
            if self.pending.is_some() || group.iter().fold(false, |any, one| any | is_told(one)) {
                group.iter().for_each(|&record| self.push(record));
            }
        }
    }

    /// Takes the next record of the stream.
    pub fn push(&mut self, record: Record) {
        match record.kind() {
            Some(Kind::More) => {
                if let Some((next, pc)) = self.pending.take() {
                    if let Some(thread) = self.running {
                        self.steps.push(Part::Run { thread, count: record.tail, pc });
                    }
                    self.running = Some(next);
                }
            }
            Some(Kind::Switch) => {
                self.pending = Some((ThreadId(record.operand() as u32), Pc(record.pc())));
            }
            Some(Kind::Choice) => self.steps.push(Part::Choose(record.operand() as u32)),
            _ => {}
        }
    }

    /// What was collected, with `run` to tell sites by. The thread that ran last goes on
    /// for as long as it can.
    #[must_use]
    pub fn finish(self, run: &Run) -> Schedule {
        let last = self.running.unwrap_or(ThreadId(0));
        let steps = self.steps.into_iter().map(|part| match part {
            Part::Run { thread, count, pc } => Step::Run { thread, count, site: run.site(pc) },
            Part::Choose(choose) => Step::Choose { choose },
        });
        let end = Step::Run { thread: last, count: u64::MAX, site: Site::UNKNOWN };
        Schedule { steps: steps.chain([end]).collect() }
    }
}

/// The policy that goes on where a schedule has ended: threads run until they block, so
/// that nothing is left to chance.
pub const POLICY_AFTER: Policy = Policy::Rr;

#[cfg(test)]
mod tests {
    use raddle_trace::control::Mode;
    use raddle_trace::record::Switch;
    use raddle_trace::run::Module;

    use super::*;

    fn run() -> Run {
        let program = Module {
            path: "/bin/prog".into(),
            build_id: String::new(),
            base: 0x1000,
            low: 0x1000,
            high: 0x2000,
        };
        Run {
            command: vec![],
            directory: String::new(),
            mode: Mode::Controlled,
            policy: None,
            seed: 0,
            modules: vec![program],
            threads: vec![],
            ending: None,
        }
    }

    fn switch(to: u64, reason: Switch, pc: u64, steps: u64) -> [Record; 2] {
        [Record::new(Kind::Switch, reason as u8, to, 0, pc), Record::more(steps)]
    }

    #[test]
    fn a_stretch_belongs_to_the_thread_before() {
        let mut recorder = Recorder::default();
        let records = [
            switch(0, Switch::Start, 0, 0),
            switch(1, Switch::Preempt, 0x1234, 5),
            [Record::new(Kind::Choice, 3, 2, 0, 0), Record::new(Kind::Read, 8, 0, 0, 0)],
            switch(0, Switch::Blocked, 0x1240, 9),
        ];
        let records: Vec<_> = records.into_iter().flatten().collect();
        // Cut between a switch and its payload.
        recorder.push_all(&records[..3]);
        recorder.push_all(&records[3..]);
        let site = |offset| Site::new(b"prog", offset);
        let expected = vec![
            Step::Run { thread: ThreadId(0), count: 5, site: site(0x234) },
            Step::Choose { choose: 2 },
            Step::Run { thread: ThreadId(1), count: 9, site: site(0x240) },
            Step::Run { thread: ThreadId(0), count: u64::MAX, site: Site::UNKNOWN },
        ];
        assert_eq!(recorder.finish(&run()).steps, expected);
    }
}
