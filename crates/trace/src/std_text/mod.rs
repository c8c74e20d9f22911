//! STD text: traces as lines, the format of the RAPID tools for race prediction.
//!
//! ```text
//! T0|fork(T1)|3        thread T0, at location 3, creates T1
//! T0|acq(L0)|4         takes lock L0
//! T0|r(V2)|5           reads variable V2; w(V2) writes it
//! T0|rel(L0)|6
//! T0|join(T1)|7
//! T0|begin|8           a block that is meant to be atomic; end closes it
//! ```
//! The lines are in the order in which the events happened. The format has only these operations,
//! so everything else in a trace is expressed in terms of them when it is [exported](export()):
//!
//! | event | lines |
//! |---|---|
//! | read, write | `r`, `w`: one line per location that it covers |
//! | a block is freed, memory is unmapped | `w` of each of its locations that was accessed |
//! | spawn, join | `fork`, `join` |
//! | a lock is taken, released | `acq`, `rel`; if the thread has it already, nothing |
//! | a reader-writer lock | readers take a lock of their own, writers take those of all readers |
//! | user's mark of a unit | `begin`, `end` |
//! | atomic load, store, update | `r`, `w`, `r` and `w`, within `acq`, `rel` of a lock of its own |
//! | semaphore post, signal, broadcast, futex wake, barrier reached, once done, sending, annotated release | `acq`, `w`, `rel` on a lock and a variable of the object's own |
//! | semaphore wait, waking up by these, barrier left, once found done, receiving, annotated acquire | likewise, `r` (a semaphore wait also `w`) |
//! | anything else | nothing |
//!
//! A variable is a location in the sense of [`crate::location`], and a new one after its memory
//! was freed or unmapped. The combination of lock and variable makes the order of such operations binding for
//! all analyses of RAPID: for happens-before through the lock, for prediction because a read must
//! see its write. So two atomic operations never race, while an atomic operation and a plain
//! access may. Threads keep their numbers; variables, locks and locations are numbered in order
//! of appearance.
//!
//! **What is lost:** values and sizes; memory orders: a relaxed atomic operation orders like any
//! other, so a race that only seems to be ordered by one is missed; calls and returns. In free
//! mode the order is that of time stamps, which may place a lock's release after its next
//! acquire; such a text is not well-formed.
//!
//! [`import()`] accepts the same text. Exporting the result yields the same text, up to the
//! numbers of variables, locks and locations, and those of threads if they do not appear in
//! order.

mod export;
mod import;

pub use export::{ExportError, Legend, export};
pub use import::{ImportError, import};

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::control::Mode;
    use crate::file::{Trace, Writer};
    use crate::id::ThreadId;
    use crate::record::{self, Kind, Lock, Record};
    use crate::run::Run;

    fn imported(text: &str) -> Result<Trace, ImportError> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("t");
        import(text.as_bytes(), Writer::create(&path).expect("a writer"))?;
        Ok(Trace::open(&path).expect("open"))
    }

    fn exported(trace: &Trace) -> String {
        let mut text = Vec::new();
        export(trace, &mut text).expect("export");
        String::from_utf8(text).expect("text")
    }

    fn check(text: &str, expect: &str) {
        let trim = |text: &str| text.lines().map(|line| line.trim().to_owned() + "\n").collect();
        let text: String = trim(text.trim());
        let expect: String = trim(expect.trim());
        assert_eq!(exported(&imported(&text).expect("import")), expect);
    }

    fn check_error(text: &str, expect: &str) {
        let Err(err) = imported(text) else { panic!("{text:?} was taken") };
        assert_eq!(err.to_string(), format!("{expect}; a line reads like `T0|r(V12)|34`"));
    }

    #[test]
    fn a_text_comes_back_with_its_numbers_in_order() {
        check(
            "T0|r(V123)|345
             T1|w(V234.23[0])|456
             T0|fork(T2)|123

             T2|req(L34)|120
             T2|acq(L34)|120
             T2|rel(L34)|130
             T0|join(T2)|134
             T0|begin|1
             T0|r(V234.23[0])|345
             T0|end|2",
            "T0|r(V0)|0
             T1|w(V1)|1
             T0|fork(T2)|2
             T2|acq(L0)|3
             T2|rel(L0)|4
             T0|join(T2)|5
             T0|begin|6
             T0|r(V1)|0
             T0|end|7",
        );
    }

    #[test]
    fn an_empty_text_is_an_empty_trace() {
        check("", "");
    }

    #[test]
    fn only_the_outermost_acquire_is_told() {
        check(
            "T0|acq(L)|1
             T0|acq(L)|2
             T0|rel(L)|3
             T0|rel(L)|4",
            "T0|acq(L0)|0
             T0|rel(L0)|1",
        );
    }

    #[test]
    fn a_line_is_an_event() {
        let trace = imported("T0|fork(T1)|1\nT1|w(x)|2\nT0|join(T1)|3\n").expect("import");
        let stats = trace.stats().expect("stats");
        assert_eq!((stats.events, stats.threads, stats.locations), (3, 2, 1));
    }

    #[test]
    fn threads_are_named_by_spawn_path() {
        let text = "A|fork(B)|1\nA|fork(C)|1\nC|fork(D)|1\nE|w(x)|1\n";
        let trace = imported(text).expect("import");
        let threads = trace.run().threads.iter();
        let names: Vec<_> = threads.map(|t| (t.name.as_str(), t.label.as_deref())).collect();
        let expect = [
            ("main", Some("A")),
            ("main/1", Some("B")),
            ("main/2", Some("C")),
            ("main/2/1", Some("D")),
            ("other/1", Some("E")),
        ];
        assert_eq!(names, expect);
    }

    #[test]
    fn a_location_is_the_offset_of_its_site() {
        let trace = imported("T0|w(x)|34\n").expect("import");
        let event = trace.events().next().expect("one").expect("an event");
        assert_eq!(trace.run().site(event.pc).offset(), 34);
    }

    #[test]
    fn bad_lines_are_named() {
        check_error("T0|r(x)|1\nT0|r(x)", "line 2: 2 fields between bars where three belong");
        check_error("T0|r(x)|1|2", "line 1: 4 fields between bars where three belong");
        check_error("|r(x)|1", "line 1: no thread");
        check_error("T0|r(x)|here", "line 1: location `here` is not a number below 1099511627776");
        check_error("T0|r(x|1", "line 1: `r(` without its `)`");
        check_error("T0|r|1", "line 1: `r` of nothing");
        check_error("T0|acq()|1", "line 1: `acq` of nothing");
        check_error("T0|end(x)|1", "line 1: `end` takes no operand");
        check_error("T0|read(x)|1", "line 1: unknown operation `read`");
        check_error("T0|acq(l)|1\nT1|acq(l)|1", "line 2: lock l is held by T0");
        check_error("T0|rel(l)|1", "line 1: lock l is released and not held");
        check_error("T0|fork(T1)|1\nT0|fork(T1)|1", "line 2: thread T1 is forked already");
        check_error("T1|w(x)|1\nT0|fork(T1)|1", "line 2: thread T1 runs already");
        check_error("T0|join(T1)|1", "line 1: thread T1 is joined and was never there");
        check_error("T0|join(T0)|1", "line 1: thread T0 joins itself");
    }

    #[test]
    fn a_bad_text_leaves_nothing_behind() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let writer = Writer::create(&directory.path().join("t")).expect("a writer");
        import(&b"nonsense"[..], writer).expect_err("nonsense");
        assert_eq!(directory.path().read_dir().expect("a directory").count(), 0);
    }

    /// Records of one stream, as text.
    fn check_export(records: &[Record], expect: &str) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("t");
        let mut writer = Writer::create(&path).expect("a writer");
        writer.push(0, records).expect("push");
        let run = Run {
            command: Vec::new(),
            directory: String::new(),
            mode: Mode::Controlled,
            policy: None,
            seed: 0,
            modules: Vec::new(),
            threads: Vec::new(),
            ending: None,
        };
        writer.finish(&run).expect("finish");
        let lines = exported(&Trace::open(&path).expect("open"));
        let expect: Vec<_> =
            expect.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        assert_eq!(lines.lines().collect::<Vec<_>>(), expect);
    }

    fn at(kind: Kind, info: u8, operand: u64) -> Record {
        Record::new(kind, info, operand, 0, 0x100)
    }

    fn switch(to: u64) -> [Record; 2] {
        [at(Kind::Switch, 1, to), Record::more(1)]
    }

    #[test]
    fn overlapping_accesses_share_variables() {
        check_export(
            &[at(Kind::Write, 8, 0x10), at(Kind::Read, 4, 0x14), at(Kind::Read, 4, 0x18)],
            "T0|w(V0)|0
             T0|w(V1)|0
             T0|r(V1)|0
             T0|r(V2)|0",
        );
    }

    #[test]
    fn freed_memory_is_written_and_then_another_variable() {
        check_export(
            &[
                at(Kind::Read, 4, 0x10),
                at(Kind::Free, 0, 0x10),
                Record::more(16),
                at(Kind::Alloc, 0, 0x10),
                Record::more(16),
                at(Kind::Read, 4, 0x10),
            ],
            "T0|r(V0)|0
             T0|w(V0)|0
             T0|r(V1)|0",
        );
    }

    #[test]
    fn an_atomic_update_is_a_read_and_a_write_under_a_lock() {
        check_export(
            &[at(Kind::AtomicUpdate, 4, 0x10), Record::more(1), Record::more(2)],
            "T0|acq(L0)|0
             T0|r(V0)|0
             T0|w(V0)|0
             T0|rel(L0)|0",
        );
    }

    #[test]
    fn a_semaphore_orders_by_a_variable_under_a_lock() {
        let records =
            [&[at(Kind::SemPost, 0, 0x40)][..], &switch(1), &[at(Kind::SemWait, 0, 0x40)]].concat();
        check_export(
            &records,
            "T0|acq(L0)|0
             T0|w(V0)|0
             T0|rel(L0)|0
             T1|acq(L0)|0
             T1|r(V0)|0
             T1|w(V0)|0
             T1|rel(L0)|0",
        );
    }

    #[test]
    fn readers_overlap_and_exclude_the_writer() {
        let shared = Lock::RwLock as u8 | record::SHARED;
        let exclusive = Lock::RwLock as u8;
        let records = [
            &[at(Kind::Acquire, shared, 0x40)][..],
            &switch(1),
            &[at(Kind::Acquire, shared, 0x40), at(Kind::Release, exclusive, 0x40)],
            &switch(0),
            &[at(Kind::Release, exclusive, 0x40)],
            &switch(2),
            &[at(Kind::Acquire, exclusive, 0x40), at(Kind::Release, exclusive, 0x40)],
        ];
        check_export(
            &records.concat(),
            "T0|acq(L0)|0
             T1|acq(L1)|0
             T1|rel(L1)|0
             T0|rel(L0)|0
             T2|acq(L2)|0
             T2|acq(L0)|0
             T2|acq(L1)|0
             T2|rel(L1)|0
             T2|rel(L0)|0
             T2|rel(L2)|0",
        );
    }

    /// A well-formed text, generated from numbers that say what to try next.
    fn text(tries: &[(u8, u8, u8, u8)]) -> String {
        // By thread: the locks that it holds, innermost last; none after it was joined.
        let mut threads: Vec<Option<Vec<u8>>> = vec![Some(Vec::new())];
        let mut lines = String::new();
        for &(who, what, operand, site) in tries {
            let who = usize::from(who) % threads.len();
            let n_threads = threads.len();
            let taken = threads.iter().flatten().flatten().any(|&lock| lock == operand % 4);
            let other = usize::from(operand) % n_threads;
            let can_join = other != who && threads[other].as_ref().is_some_and(Vec::is_empty);
            let Some(locks) = &mut threads[who] else { continue };
            let op = match what % 8 {
                0 | 1 => format!("r(V{})", operand % 8),
                2 | 3 => format!("w(V{})", operand % 8),
                4 if !taken => {
                    locks.push(operand % 4);
                    format!("acq(L{})", operand % 4)
                }
                5 => match locks.pop() {
                    Some(lock) => format!("rel(L{lock})"),
                    None => continue,
                },
                6 if n_threads < 6 => {
                    threads.push(Some(Vec::new()));
                    format!("fork(T{n_threads})")
                }
                7 if can_join => {
                    threads[other] = None;
                    format!("join(T{other})")
                }
                _ => if operand % 2 == 0 { "begin" } else { "end" }.to_owned(),
            };
            lines += &format!("T{who}|{op}|{}\n", site % 16);
        }
        lines
    }

    /// The text with all names renumbered in order of appearance.
    fn in_order(text: &str) -> String {
        let mut names: HashMap<char, Vec<String>> = HashMap::new();
        let mut number = |kind: char, name: &str| {
            let known = names.entry(kind).or_default();
            known.iter().position(|other| other == name).unwrap_or_else(|| {
                known.push(name.to_owned());
                known.len() - 1
            })
        };
        text.lines()
            .map(|line| {
                let fields: Vec<_> = line.split('|').collect();
                let op = match fields[1].split_once(['V', 'L', 'T']) {
                    Some((op, name)) => {
                        let kind = fields[1].as_bytes()[op.len()] as char;
                        format!("{op}{kind}{})", number(kind, name))
                    }
                    None => fields[1].to_owned(),
                };
                format!("{}|{op}|{}\n", fields[0], number('@', fields[2]))
            })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn texts_come_back(tries in vec(any::<(u8, u8, u8, u8)>(), 0..200)) {
            let text = text(&tries);
            // Threads are forked in order, so theirs stay.
            let expect = in_order(&text.replace("(T", "(#"));
            let trace = imported(&text).expect("import");
            let got = in_order(&exported(&trace).replace("(T", "(#"));
            prop_assert_eq!(got, expect);
            prop_assert!(trace.run().threads.iter().map(|t| t.id).eq((0..6).map(ThreadId).take(trace.run().threads.len())));
        }

        #[test]
        fn any_text_is_a_trace_or_an_error(text in "([T0-2]{1,2}\\|(r|w|acq|rel|fork|join|begin|end)?[(]?[TVL]?[0-2]?[)]?\\|[0-9]?\n){0,8}") {
            let _ = imported(&text);
        }
    }
}
