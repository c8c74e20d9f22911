// Component: flight recorder. Each traced thread writes its events to a ring
// buffer of its own; a dumper thread walks over all rings and prints or counts
// the events that are new since its last visit.
//
// Bug (order violation, wrong index publication): record() publishes the new
// write position before it has written the event to the slot. If the dumper
// reads the position and the slot in between, it consumes an event that is not
// there yet (an empty slot). One writer and one reader per ring; the slots are
// plain memory in an UnsafeCell, as usual for single-producer rings.
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;

const SLOTS: usize = 32;
const WRITERS: usize = 2;
const EVENTS: u32 = 8;
const VISITS: usize = 4;

#[derive(Clone, Copy)]
struct Event {
    kind: u32,
    arg: u32,
}

struct Ring {
    slots: [UnsafeCell<Event>; SLOTS],
    write_pos: AtomicUsize,
    dropped: AtomicUsize,
}

unsafe impl Sync for Ring {}

impl Ring {
    fn new() -> Ring {
        Ring {
            slots: [const { UnsafeCell::new(Event { kind: 0, arg: 0 }) }; SLOTS],
            write_pos: AtomicUsize::new(0),
            dropped: AtomicUsize::new(0),
        }
    }

    fn record(&self, e: Event) {
        let pos = self.write_pos.load(Ordering::Relaxed);
        if pos >= SLOTS {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.write_pos.store(pos + 1, Ordering::Release); // guilty
        unsafe { *self.slots[pos].get() = e }; // guilty
    }

    fn read_from(&self, from: usize, out: &mut Vec<Event>) -> usize {
        let end = self.write_pos.load(Ordering::Acquire); // guilty
        for pos in from..end {
            let e = unsafe { *self.slots[pos].get() }; // guilty
            out.push(e);
        }
        end
    }
}

struct Recorder {
    rings: Vec<Ring>,
    work_done: AtomicU64,
}

fn traced_thread(rec: &Recorder, id: usize) {
    let ring = &rec.rings[id];
    let mut state = id as u64 + 1;
    for i in 1..=EVENTS {
        for _ in 0..60 {
            state = state.wrapping_mul(2862933555777941757).wrapping_add(3037000493);
        }
        ring.record(Event { kind: 1 + i % 3, arg: i });
        rec.work_done.fetch_add(state >> 60, Ordering::Relaxed);
    }
}

fn dumper_thread(rec: &Recorder) -> usize {
    let mut seen = vec![0; rec.rings.len()];
    let mut last_arg = vec![0; rec.rings.len()];
    let mut events = Vec::new();
    let mut total = 0;
    for _ in 0..VISITS {
        for (r, ring) in rec.rings.iter().enumerate() {
            events.clear();
            seen[r] = ring.read_from(seen[r], &mut events);
            for e in &events {
                assert!(e.kind != 0, "ring {r}: empty event");
                assert_eq!(e.arg, last_arg[r] + 1);
                last_arg[r] = e.arg;
                total += 1;
            }
        }
    }
    total
}

fn main() {
    let rec = Arc::new(Recorder {
        rings: (0..WRITERS).map(|_| Ring::new()).collect(),
        work_done: AtomicU64::new(0),
    });
    let mut writers = Vec::new();
    for id in 0..WRITERS {
        let rec = Arc::clone(&rec);
        writers.push(thread::spawn(move || traced_thread(&rec, id)));
    }
    let dumper = {
        let rec = Arc::clone(&rec);
        thread::spawn(move || dumper_thread(&rec))
    };
    for w in writers {
        w.join().unwrap();
    }
    let early = dumper.join().unwrap();
    let mut rest = Vec::new();
    for ring in &rec.rings {
        assert_eq!(ring.read_from(0, &mut rest), EVENTS as usize);
        assert_eq!(ring.dropped.load(Ordering::Relaxed), 0);
    }
    assert!(early <= rest.len());
    println!("{early} of {} events were dumped early", rest.len());
}
