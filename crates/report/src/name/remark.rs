//! Notes on what runs did wrong without failing by it.

use raddle_lab::budget::Budget;
use raddle_lab::remarks::{RemarkTally, RunSet};
use raddle_symbols::name::Namer;
use raddle_trace::run::Run;
use raddle_trial::outcome::signal_name;
use raddle_trial::remarked::{Mistake, Remarked};

use super::Names;

impl Names<'_> {
    /// The notes on a run, one for each place.
    #[must_use]
    pub fn remarks(&self, run: &Run, remarks: &[Remarked]) -> Vec<String> {
        let namer = Namer::new(run, self.cache);
        let mut notes = Notes::default();
        for remarked in remarks {
            notes.add(remarked, namer.own_site(remarked.pc, None), &RunSet::default());
        }
        notes.sentences(|_| String::new())
    }

    /// The notes on all runs of a command, one for each place.
    #[must_use]
    pub fn remarks_in_all(&self, budget: &Budget) -> Vec<String> {
        let mut notes = Notes::default();
        for RemarkTally { remarked, runs, run, .. } in &budget.remarks() {
            let place = Namer::new(run, self.cache).own_site(remarked.pc, None);
            notes.add(remarked, place, runs);
        }
        notes.sentences(|runs| match budget.n_runs() {
            1 => String::new(),
            n_runs => format!(" in {} of {n_runs} runs", runs.n_runs()),
        })
    }
}

/// Mistakes by the names of their places: a compiler may make several pieces of code of one.
#[derive(Default)]
struct Notes(Vec<(Remarked, String, RunSet)>);

impl Notes {
    fn add(&mut self, remarked: &Remarked, place: String, runs: &RunSet) {
        let is_same = |(known, known_place, _): &&mut (Remarked, String, RunSet)| {
            known.mistake == remarked.mistake && *known_place == place
        };
        match self.0.iter_mut().find(is_same) {
            Some((known, _, known_runs)) => {
                known.n += remarked.n;
                known_runs.extend(runs);
            }
            None => self.0.push((remarked.clone(), place, runs.clone())),
        }
    }

    fn sentences(&self, runs: impl Fn(&RunSet) -> String) -> Vec<String> {
        let sentence = |(remarked, place, set): &(Remarked, String, RunSet)| {
            sentence(&remarked.mistake, remarked.n, place, &runs(set))
        };
        self.0.iter().map(sentence).collect()
    }
}

/// What happened, where, how often, and in which runs.
fn sentence(mistake: &Mistake, n: u64, place: &str, runs: &str) -> String {
    let times = match n {
        1 => "once".to_owned(),
        n => format!("{n} times"),
    };
    match mistake {
        Mistake::HandlerErrno { signal } => {
            let signal = signal_name(*signal);
            format!("handler-errno: the handler of {signal} changed errno {times}{runs}: {place}")
        }
        Mistake::HandlerUnsafe { signal, call, is_indirect } => {
            let signal = signal_name(*signal);
            let through = if *is_indirect { " through a library" } else { "" };
            format!(
                "handler-unsafe: the handler of {signal} called {call}{through} {times}{runs}, which is not async-signal-safe: {place}"
            )
        }
        Mistake::Leak => {
            let threads = match n {
                1 => "1 thread was".to_owned(),
                n => format!("{n} threads were"),
            };
            format!("leak: {threads} neither joined nor detached{runs}: created at {place}")
        }
        Mistake::NoRoom => {
            format!(
                "signal handlers did such things {times}{runs} at more places than raddle names"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use raddle_trace::id::Pc;

    use super::*;

    #[track_caller]
    fn check(mistake: &Mistake, n: u64, runs: &str, expect: &str) {
        assert_eq!(sentence(mistake, n, "a.c:3 in f", runs), expect);
    }

    #[test]
    fn pieces_of_code_at_one_place_make_one_note() {
        let mut notes = Notes::default();
        for (pc, place, run) in [(1, "a.c:3 in f", 0), (2, "a.c:3 in f", 0), (3, "a.c:4 in f", 1)] {
            let mut runs = RunSet::default();
            runs.insert(run);
            let remarked = Remarked { mistake: Mistake::Leak, pc: Pc(pc), n: 1 };
            notes.add(&remarked, place.to_owned(), &runs);
        }
        let sentences = notes.sentences(|runs| format!(" in {}", runs.n_runs()));
        assert_eq!(
            sentences,
            [
                "leak: 2 threads were neither joined nor detached in 1: created at a.c:3 in f",
                "leak: 1 thread was neither joined nor detached in 1: created at a.c:4 in f",
            ]
        );
    }

    #[test]
    fn a_note_says_what_where_and_how_often() {
        check(
            &Mistake::HandlerErrno { signal: 14 },
            3,
            " in 2 of 9 runs",
            "handler-errno: the handler of SIGALRM changed errno 3 times in 2 of 9 runs: a.c:3 in f",
        );
        let call = |is_indirect| Mistake::HandlerUnsafe {
            signal: 10,
            call: "malloc".to_owned(),
            is_indirect,
        };
        check(
            &call(false),
            1,
            "",
            "handler-unsafe: the handler of SIGUSR1 called malloc once, which is not async-signal-safe: a.c:3 in f",
        );
        check(
            &call(true),
            2,
            "",
            "handler-unsafe: the handler of SIGUSR1 called malloc through a library 2 times, which is not async-signal-safe: a.c:3 in f",
        );
        let leak = "leak: 1 thread was neither joined nor detached: created at a.c:3 in f";
        check(&Mistake::Leak, 1, "", leak);
    }
}
