//! The tables, in Markdown, with what the figures should be.

use crate::programs;
use crate::run::Stats;

/// Control without a trace, as a part of ThreadSanitizer's time.
const CONTROLLED_MAX: f64 = 0.5;
/// Recording, as a part of ThreadSanitizer's time.
const RECORDING_MAX: f64 = 1.0;
/// Collecting for `localize`, as a part of ThreadSanitizer's time.
const COLLECTING_MAX: f64 = 1.0;
const BYTES_PER_EVENT_MAX: f64 = 3.0;
const TRIALS_PER_S_MIN: f64 = 300.0;
const INSTRUCTIONS_MAX: usize = 12;

/// The processor seconds of a program, one per round.
#[derive(Debug, Default)]
pub(crate) struct Times {
    pub(crate) native: Vec<f64>,
    pub(crate) gcc: Vec<f64>,
    /// Empty without clang.
    pub(crate) clang: Vec<f64>,
    pub(crate) controlled: Vec<f64>,
    pub(crate) recording: Vec<f64>,
    pub(crate) collecting: Vec<f64>,
}

/// All about a program.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) program: &'static str,
    pub(crate) times: Times,
    pub(crate) recorded: Stats,
}

/// What was measured, with what, and where.
pub(crate) fn conditions(n_rounds: u32) -> String {
    let n_processors = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("of unknown model", |(_, model)| model);
    let compilers = ["gcc", "clang"].map(programs::version).into_iter().flatten();
    let compilers: Vec<_> = compilers.collect();
    format!(
        "Processor seconds (user and system, target and raddle), median of {n_rounds}; {n_processors} processors, {model}; {}; `-O2 -g`.",
        compilers.join("; ")
    )
}

/// What runs cost.
pub(crate) fn times(figures: &[Figures]) -> String {
    let mut table = Table::new(&[
        "program".into(),
        "native".into(),
        "gcc TSan".into(),
        "clang TSan".into(),
        "raddle, no trace".into(),
        "raddle, recording".into(),
        "raddle, collecting".into(),
        format!("no trace / gcc TSan (≤ {CONTROLLED_MAX})"),
        format!("recording / gcc TSan (≤ {RECORDING_MAX:.1})"),
        format!("recording / clang TSan (aim: ≤ {RECORDING_MAX:.1})"),
        format!("collecting / gcc TSan (≤ {COLLECTING_MAX:.1})"),
    ]);
    for Figures { program, times, .. } in figures {
        let [native, gcc, clang] = [&times.native, &times.gcc, &times.clang].map(|one| median(one));
        let [controlled, recording, collecting] =
            [&times.controlled, &times.recording, &times.collecting].map(|one| median(one));
        let ratio = |part: Option<f64>, whole: Option<f64>, max: f64| match (part, whole) {
            (Some(part), Some(whole)) => judged(part / whole, part / whole <= max),
            _ => NOTHING.to_owned(),
        };
        table.row(&[
            (*program).to_owned(),
            seconds(native),
            seconds(gcc),
            seconds(clang),
            seconds(controlled),
            seconds(recording),
            seconds(collecting),
            ratio(controlled, gcc, CONTROLLED_MAX),
            ratio(recording, gcc, RECORDING_MAX),
            ratio(recording, clang, RECORDING_MAX),
            ratio(collecting, gcc, COLLECTING_MAX),
        ]);
    }
    table.text
}

/// What traces weigh.
pub(crate) fn traces(figures: &[Figures]) -> String {
    let mut table = Table::new(&[
        "program".into(),
        "events".into(),
        format!("bytes per event (≤ {BYTES_PER_EVENT_MAX})"),
        "ns per event to record".into(),
    ]);
    for Figures { program, times, recorded } in figures {
        let n_events = recorded.n_events.max(1) as f64;
        let bytes = recorded.n_bytes as f64 / n_events;
        // Beyond what control costs already.
        let ns = match (median(&times.recording), median(&times.controlled)) {
            (Some(recording), Some(controlled)) => {
                format!("{:.1}", (recording - controlled) * 1e9 / n_events)
            }
            _ => NOTHING.to_owned(),
        };
        table.row(&[
            (*program).to_owned(),
            recorded.n_events.to_string(),
            judged(bytes, bytes <= BYTES_PER_EVENT_MAX),
            ns,
        ]);
    }
    table.text
}

/// The rest.
pub(crate) fn others(trials_per_s: f64, n_instructions: usize) -> String {
    let mut table = Table::new(&["".into(), "measured".into(), "budget".into(), "".into()]);
    table.row(&[
        "runs of a small program per second, two at a time".to_owned(),
        format!("{trials_per_s:.0}"),
        format!("≥ {TRIALS_PER_S_MIN}"),
        word(trials_per_s >= TRIALS_PER_S_MIN).to_owned(),
    ]);
    table.row(&[
        "instructions of a plain access without a trace".to_owned(),
        n_instructions.to_string(),
        format!("≤ {INSTRUCTIONS_MAX}"),
        word(n_instructions <= INSTRUCTIONS_MAX).to_owned(),
    ]);
    table.text
}

const NOTHING: &str = "–";

struct Table {
    text: String,
}

impl Table {
    /// A table with the first column to the left and the others to the right.
    fn new(head: &[String]) -> Self {
        let mut table = Self { text: String::new() };
        table.row(head);
        let rule: Vec<_> = (0..head.len()).map(|i| if i == 0 { "---" } else { "--:" }).collect();
        table.text += &format!("|{}|\n", rule.join("|"));
        table
    }

    fn row(&mut self, cells: &[String]) {
        self.text += &format!("| {} |\n", cells.join(" | "));
    }
}

fn seconds(seconds: Option<f64>) -> String {
    seconds.map_or(NOTHING.to_owned(), |seconds| format!("{seconds:.2}"))
}

fn judged(figure: f64, met: bool) -> String {
    format!("{figure:.2} {}", word(met))
}

fn word(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

/// The one in the middle, or between the two that are.
fn median(figures: &[f64]) -> Option<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (high, low) = (sorted.get(sorted.len() / 2)?, sorted[(sorted.len() - 1) / 2]);
    Some((low + high) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[5.0, 1.0, 9.0]), Some(5.0));
        assert_eq!(median(&[5.0, 1.0, 9.0, 7.0]), Some(6.0));
    }

    #[test]
    fn without_clang_its_columns_stay_empty() {
        let times = Times {
            native: vec![0.1],
            gcc: vec![1.0],
            clang: vec![],
            controlled: vec![0.5],
            recording: vec![1.5],
            collecting: vec![0.9],
        };
        let recorded = Stats { n_events: 100_000_000, n_bytes: 310_000_000 };
        let figures = [Figures { program: "sort", times, recorded }];
        let last = |table: String| table.lines().last().map(str::to_owned).unwrap_or_default();
        assert_eq!(
            last(super::times(&figures)),
            "| sort | 0.10 | 1.00 | – | 0.50 | 1.50 | 0.90 | 0.50 met | 1.50 missed | – | 0.90 met |"
        );
        assert_eq!(last(traces(&figures)), "| sort | 100000000 | 3.10 missed | 10.0 |");
    }
}
