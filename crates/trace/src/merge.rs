//! Streams of free threads, merged by time while they still grow.
//!
//! Each thread stamps its events with the time, so those of one stream are in order. What is
//! there at the end of a round, in which every stream was looked at once, may still be joined by
//! earlier events of other streams, whose threads were slow to write them down. So events wait for
//! one more round. A thread that is kept from its processor between stamp and record for longer
//! than that has its event put where it arrives, which is no less true: the access itself comes
//! behind the record.
//!
//! What waits is no more than what threads do in two rounds, however long the run.

use std::collections::VecDeque;

use crate::event::{DecodeError, Decoder, Event};
use crate::id::ThreadId;
use crate::record::Record;

/// See the module.
#[derive(Default)]
pub struct Merge {
    streams: Vec<Stream>,
    /// The latest time that was seen, and that of the rounds before this one.
    latest: u64,
    settled: u64,
}

#[derive(Default)]
struct Stream {
    decoder: Decoder,
    /// With the time of each.
    waiting: VecDeque<(u64, Event)>,
}

impl Stream {
    fn next(&self) -> Option<u64> {
        self.waiting.front().map(|&(time, _)| time)
    }
}

impl Merge {
    /// Takes the next records of a stream.
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

    /// Every stream was looked at once more. Gives the events that nothing can come before.
    pub fn round(&mut self, each: impl FnMut(&Event)) {
        self.until(self.settled, each);
        self.settled = self.latest;
    }

    /// The run is over: gives all that is left.
    pub fn finish(mut self, each: impl FnMut(&Event)) {
        self.until(u64::MAX, each);
    }

    fn until(&mut self, limit: u64, mut each: impl FnMut(&Event)) {
        loop {
            // The earliest, and how far it may go before another one has its turn.
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

    /// A read at a time, of an address that tells it.
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
        // One that another thread was slow to write down.
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
