//! Mistakes that a run showed without failing by them.
//!
//! What signal handlers did is counted by the runtime. Thread leaks are found here, from what the
//! runtime knows about each thread when the program has exited: a thread is leaked if it has ended
//! and was neither joined nor detached. As in ThreadSanitizer, one that still runs then is none,
//! and nothing is said about a program that did not exit by itself, or that ended with its last
//! thread after `main` had ended by `pthread_exit`: nobody was left to join that. Unlike there,
//! nothing is said about a program that exits with an error either: it has other worries than to
//! join its threads.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use raddle_trace::control::{RemarkSlot, State, ThreadSlot};
use raddle_trace::id::Pc;
use raddle_trace::remark::Remark;

use crate::outcome::{End, Outcome};
use crate::shm::Block;

/// A mistake at one place in the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remarked {
    /// The kind of mistake.
    pub mistake: Mistake,
    /// Where: the handler, the call in a handler, the creation of the thread.
    pub pc: Pc,
    /// How often.
    pub n: u64,
}

/// A mistake that is worth a note.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mistake {
    /// A signal handler changed `errno`.
    HandlerErrno {
        /// The signal.
        signal: i32,
    },
    /// A signal handler called a function that is not async-signal-safe.
    HandlerUnsafe {
        /// The signal.
        signal: i32,
        /// The function.
        call: String,
        /// Whether libc called it; then the place is that of the handler.
        is_indirect: bool,
    },
    /// A thread that ended was neither joined nor detached.
    Leak,
    /// One of the first two, at a place that the control block had no room for.
    NoRoom,
}

/// The mistakes of a run, in order of their kind and place.
pub(crate) fn remarked(block: &Block, outcome: &Outcome) -> Vec<Remarked> {
    let control = block.control();
    let mut remarks: Vec<_> = control.remarks.iter().filter_map(in_handler).collect();
    let n_lost = control.n_remarks_lost.load(Relaxed);
    if n_lost > 0 {
        remarks.push(Remarked { mistake: Mistake::NoRoom, pc: Pc(0), n: n_lost });
    }
    if outcome.end == (End::Exit { status: 0 }) {
        remarks.extend(leaks(&block.threads()[..outcome.threads.len()]));
    }
    remarks.sort_by(|a, b| (&a.mistake, a.pc).cmp(&(&b.mistake, b.pc)));
    remarks
}

fn in_handler(slot: &RemarkSlot) -> Option<Remarked> {
    let (remark, signal, pc) = RemarkSlot::of_key(slot.key.load(Relaxed))?;
    let signal = i32::from(signal);
    let mistake = match remark {
        Remark::HandlerErrno => Mistake::HandlerErrno { signal },
        Remark::HandlerUnsafe => {
            let bytes: Vec<u8> = slot.call.iter().map(|byte| byte.load(Relaxed)).collect();
            let name = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
            let call = String::from_utf8_lossy(name).into_owned();
            let is_indirect = pc == slot.handler.load(Relaxed);
            Mistake::HandlerUnsafe { signal, call, is_indirect }
        }
        // The runtime leaves those to us.
        Remark::Leak => return None,
    };
    Some(Remarked { mistake, pc: Pc(pc), n: slot.n.load(Relaxed) })
}

/// Threads that were leaked, by the place that created them.
fn leaks(threads: &[ThreadSlot]) -> impl Iterator<Item = Remarked> + use<> {
    let has_ended = |thread: &ThreadSlot| thread.state.load(Relaxed) == State::Ended as u32;
    let created = match threads {
        [main, created @ ..] if !has_ended(main) => created,
        _ => &[],
    };
    let mut by_pc = BTreeMap::new();
    for thread in created {
        let pc = thread.spawn_pc.load(Relaxed);
        if pc != 0 && has_ended(thread) && thread.is_gone.load(Relaxed) == 0 {
            *by_pc.entry(pc).or_insert(0) += 1;
        }
    }
    by_pc.into_iter().map(|(pc, n)| Remarked { mistake: Mistake::Leak, pc: Pc(pc), n })
}

#[cfg(test)]
mod tests {
    use raddle_trace::control::Layout;

    use super::*;

    fn block() -> Block {
        Block::new(Layout { n_follow: 0, n_lanes: 1 }).expect("a memory file")
    }

    #[test]
    fn only_threads_that_ended_and_are_not_gone_are_leaked() {
        let block = block();
        let threads = &block.threads()[..6];
        for (thread, (spawn_pc, state, is_gone)) in threads.iter().zip([
            (0, State::Ready, 0),
            (0x20, State::Ended, 0),
            (0x10, State::Ended, 1),
            (0x10, State::Sleep, 0),
            (0x20, State::Ended, 0),
            (0x10, State::Ended, 0),
        ]) {
            thread.spawn_pc.store(spawn_pc, Relaxed);
            thread.state.store(state as u32, Relaxed);
            thread.is_gone.store(is_gone, Relaxed);
        }
        let leak = |pc, n| Remarked { mistake: Mistake::Leak, pc: Pc(pc), n };
        assert_eq!(leaks(threads).collect::<Vec<_>>(), [leak(0x10, 1), leak(0x20, 2)]);
        threads[0].state.store(State::Ended as u32, Relaxed);
        assert_eq!(leaks(threads).count(), 0);
    }

    #[test]
    fn a_call_by_libc_is_indirect() {
        let block = block();
        let slot = &block.control().remarks[0];
        assert_eq!(in_handler(slot), None);
        slot.key.store(RemarkSlot::key_of(Remark::HandlerUnsafe, 14, 0x7fff_1234), Relaxed);
        slot.n.store(3, Relaxed);
        for (to, from) in slot.call.iter().zip(b"malloc") {
            to.store(*from, Relaxed);
        }
        let unsafe_call = |is_indirect| {
            let mistake = Mistake::HandlerUnsafe { signal: 14, call: "malloc".into(), is_indirect };
            Some(Remarked { mistake, pc: Pc(0x7fff_1234), n: 3 })
        };
        assert_eq!(in_handler(slot), unsafe_call(false));
        slot.handler.store(0x7fff_1234, Relaxed);
        assert_eq!(in_handler(slot), unsafe_call(true));
    }
}
