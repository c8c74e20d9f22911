//! Merges the streams of free threads by time while they still grow.
//!
//! Each thread stamps its events with the time, so each stream is sorted. After a round, in which
//! every stream was read once, earlier events of other streams may still arrive from threads that
//! were slow to write them. So events wait for one more round. If a thread is preempted between
//! stamp and record for longer than that, its event is placed where it arrives, which is just as
//! true: the access itself comes after the record.
//!
//! At most two rounds of events are waiting, however long the run.

use std::collections::VecDeque;

use crate::event::{DecodeError, Decoder, Event};
use crate::id::ThreadId;
use crate::record::Record;

/// A merge of growing streams.
#[derive(Default)]
pub struct Merge {
    streams: Vec<Stream>,
    /// The latest time seen, and that of the previous rounds.
    latest: u64,
    settled: u64,
}

#[derive(Default)]
struct Stream {
    decoder: Decoder,
    /// Each with its time.
    waiting: VecDeque<(u64, Event)>,
}

impl Stream {
    fn next(&self) -> Option<u64> {
        self.waiting.front().map(|&(time, _)| time)
    }
}

impl Merge {
    /// Adds the next records of a stream.
    pub fn push(&mut self, stream: u32, records: &[Record]) -> Result<(), DecodeError> {
        while self.streams.len() <= stream as usize {
            let decoder = Decoder::new(ThreadId(self.streams.len() as u32));
            self.streams.push(Stream { decoder, ..Stream::default() });
        }
        let Stream { decoder, waiting } = &mut self.streams[stream as usize];
        for &record in records {
            if let Some(event) = decoder.push(record)? {
                let time = decoder.time().unwrap_or(0);
                self.latest = self.latest.max(time);
                waiting.push_back((time, event));
            }
        }
        Ok(())
    }

    /// Ends a round, in which every stream was read. Passes on the events that nothing can
    /// precede.
    pub fn round(&mut self, each: impl FnMut(&Event)) {
        self.until(self.settled, each);
        self.settled = self.latest;
    }

    /// Ends the run: passes on all remaining events.
    pub fn finish(mut self, each: impl FnMut(&Event)) {
        self.until(u64::MAX, each);
    }

    fn until(&mut self, limit: u64, mut each: impl FnMut(&Event)) {
        loop {
            // The earliest stream, and how far it may go before another one is next.
            let mut first = None;
            let mut limit = limit;
            for (index, stream) in self.streams.iter().enumerate() {
                let Some(time) = stream.next() else { continue };
                match first {
                    Some((earliest, _)) if earliest <= time => limit = limit.min(time),
                    before => {
                        limit = before.map_or(limit, |(time, _)| limit.min(time));
                        first = Some((time, index));
                    }
                }
            }
            let Some((_, index)) = first.filter(|&(earliest, _)| earliest <= limit) else { return };
            let waiting = &mut self.streams[index].waiting;
            while let Some((_, event)) = waiting.pop_front_if(|(time, _)| *time <= limit) {
                each(&event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Kind;

    /// A read at a given time, of an address derived from it.
    fn at(time: u64) -> [Record; 3] {
        [
            Record::new(Kind::Time, 0, 0, 0, 0),
            Record::more(time),
            Record::new(Kind::Read, 8, time, 0, 0),
        ]
    }

    fn times(events: &[Event]) -> Vec<(u32, u64)> {
        let time = |event: &Event| match event.op {
            crate::event::Op::Read(access) => (event.thread.0, access.addr.0),
            other => unreachable!("only reads are pushed, not {other:?}"),
        };
        events.iter().map(time).collect()
    }

    #[test]
    fn events_come_by_time_once_a_round_has_passed() {
        let mut merge = Merge::default();
        let mut seen = Vec::new();
        merge.push(0, &[at(10), at(30)].concat()).expect("records");
        merge.round(|event| seen.push(*event));
        assert_eq!(times(&seen), []);
        // An event that another thread was slow to write.
        merge.push(1, &[at(20), at(40)].concat()).expect("records");
        merge.round(|event| seen.push(*event));
        assert_eq!(times(&seen), [(0, 10), (1, 20), (0, 30)]);
        merge.finish(|event| seen.push(*event));
        assert_eq!(times(&seen), [(0, 10), (1, 20), (0, 30), (1, 40)]);
    }

    #[test]
    fn one_that_comes_too_late_comes_all_the_same() {
        let mut merge = Merge::default();
        let mut seen = Vec::new();
        merge.push(0, &at(10)).expect("records");
        merge.round(|event| seen.push(*event));
        merge.round(|event| seen.push(*event));
        merge.push(2, &at(5)).expect("records");
        merge.round(|event| seen.push(*event));
        assert_eq!(times(&seen), [(0, 10), (2, 5)]);
    }

    #[test]
    fn a_record_may_be_cut_between_two_pushes() {
        let mut merge = Merge::default();
        let mut seen = Vec::new();
        let records = at(7);
        merge.push(0, &records[..1]).expect("records");
        merge.round(|event| seen.push(*event));
        merge.push(0, &records[1..]).expect("records");
        merge.finish(|event| seen.push(*event));
        assert_eq!(times(&seen), [(0, 7)]);
    }

    #[test]
    fn what_makes_no_sense_is_an_error() {
        assert!(Merge::default().push(0, &[Record::more(1)]).is_err());
    }
}
