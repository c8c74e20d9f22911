//! The time to compare many large runs.

use std::fmt::Write as _;
use std::time::Instant;

use raddle_analysis::localize::facts::{Facts, Pair, PairFact, Point, SiteAccess};
use raddle_analysis::localize::procedures::suspects;
use raddle_analysis::localize::rank::{Formula, rank};
use raddle_analysis::localize::runs::Runs;
use raddle_analysis::witness::AccessKind;
use raddle_trace::id::{Addr, Site, ThreadId};

const RUNS: u64 = 100;
const PAIRS: u64 = 100_000;

/// The table.
pub(crate) fn measure() -> String {
    let passed: Vec<Facts> = (0..RUNS).map(|number| run(number, PAIRS)).collect();
    let failed = [run(RUNS, PAIRS + 1000)];
    let runs = Runs { passed: &passed, failed: &failed };
    let start = Instant::now();
    let suspects = suspects(&failed[0], &runs);
    let n_suspects = suspects.len();
    let n_ranked = rank(&runs, Formula::Jaccard, &suspects).len();
    let seconds = start.elapsed().as_secs_f64();
    let mut text = String::new();
    let _ =
        writeln!(text, "| runs | pairs in each | suspects | seconds (≤ 5) |\n|--:|--:|--:|--:|");
    let _ = write!(text, "| {RUNS} | {PAIRS} | {} | {seconds:.1} |", n_suspects + n_ranked);
    text
}

/// A run: nine of ten pairs are in all runs, and the others in some.
fn run(number: u64, n_pairs: u64) -> Facts {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut pairs: Vec<_> = (0..n_pairs + n_pairs / 10)
        .filter(|at| at % 11 != 0 || random() % 2 == 0)
        .map(|at| {
            let access = |site: u64, kind| SiteAccess { site: Site(1 << 48 | site), kind };
            let pair = Pair {
                head: access(2 * at, AccessKind::Write),
                tail: access(2 * at + 1, AccessKind::Read),
            };
            let point = |thread: u64, seq| Point {
                thread: ThreadId(thread as u32),
                seq,
                addr: Addr(0x1000 + 8 * (at / 2)),
                bytes: 8,
                loops: Vec::new(),
            };
            let (one, two) = (at % 8, (at + 1 + at / 8 % 7) % 8);
            PairFact { pair, instances: vec![[point(one, 4 * at), point(two, 4 * at + 2)]] }
        })
        .collect();
    pairs.sort_by_key(|fact| fact.pair);
    let mut accesses: Vec<_> =
        pairs.iter().flat_map(|fact| [fact.pair.head, fact.pair.tail]).collect();
    accesses.sort_unstable();
    Facts { pairs, accesses, n_events: 5 * n_pairs, n_threads: 8, ..Facts::default() }
}
