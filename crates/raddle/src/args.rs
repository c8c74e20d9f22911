//! Command-line arguments, as typed.
//!
//! Only what these types express is checked here. Each command turns its arguments into a checked
//! value of its own before anything runs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};
use raddle_trace::allow::AllowedList;
use raddle_trace::expiry::Expiry;
use raddle_trial::plan::{Delay, Order};

/// Finds the thread order that breaks a program, replays it, and explains the failure.
#[derive(Debug, Parser)]
#[command(name = "raddle", version, propagate_version = true)]
pub(crate) struct Raddle {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find a thread order that breaks a program: predict, re-execute, report
    Hunt(HuntArgs),
    /// Run a program once under control; exit with the program's status
    Run(RunArgs),
    /// Run a program once under control and record a trace
    Record(RecordArgs),
    /// Predict from a trace what could go wrong, without executing anything
    Predict(PredictArgs),
    /// Find the accesses that failing runs have in common and passing runs lack
    Localize(LocalizeArgs),
    /// Reduce the context switches that a clip needs to show its failure
    Minimize(MinimizeArgs),
    /// Trace a failure back to the write that caused it
    Isolate(IsolateArgs),
    /// Inspect, export, or import a trace
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Replay a clip: the same program in the same thread order
    Replay(ReplayArgs),
    /// Compile C code for raddle
    Cc(CompilerArgs),
    /// Compile C++ code for raddle
    #[command(name = "c++")]
    Cxx(CompilerArgs),
    /// Check whether raddle works on this machine and with a program
    Doctor(DoctorArgs),
}

#[derive(Debug, Args)]
pub(crate) struct HuntArgs {
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    /// Random seed
    #[arg(long, value_name = "N", default_value = "0", value_parser = number)]
    pub(crate) seed: u64,
    /// Output directory for clips and report.json
    #[arg(short, long, value_name = "DIR", default_value = "raddle-out")]
    pub(crate) output: PathBuf,
    /// File with patterns to look for in addition to the built-in ones
    #[arg(long, value_name = "FILE")]
    pub(crate) patterns: Option<PathBuf>,
    /// Continue until the budget is used up, even if a failure was found
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Do not reduce the context switches of failing schedules
    #[arg(long)]
    pub(crate) no_minimize: bool,
    /// Also trace each failure back to the write that caused it, as `raddle isolate` does
    #[arg(long)]
    pub(crate) isolate: bool,
    /// When sleeps and time-outs may end while other threads can run: idle (never), fair (if each of
    /// them had its share of steps, or is delayed by up to 10 ms), or any (at any time) [default:
    /// fair; last, orders that delay a thread by up to 1 s]
    #[arg(long, value_name = "WHEN", hide_possible_values = true)]
    pub(crate) expiry: Option<ExpiryName>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) allow: AllowArgs,
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
    #[command(flatten)]
    pub(crate) expected: ExpectedArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LocalizeArgs {
    /// Number of runs to compare; fewer if enough have passed and failed [default: 100, and up to 500
    /// while fewer than five have failed]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) runs: Option<u64>,
    /// Maximum number of failing runs to compare [default: all]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) failed: Option<u64>,
    /// Maximum number of passing runs to compare [default: all]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) passed: Option<u64>,
    /// Time limit
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    pub(crate) time: f64,
    /// Number of runs in parallel [default: one per processor]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) jobs: Option<u64>,
    /// Scheduling policy: random, pct, pos, or free (threads run in parallel) [default: random, pct
    /// and pos in turn]
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<Order>,
    /// For --policy free: delay accesses with probability P by up to US microseconds
    #[arg(long, value_name = "P:US")]
    pub(crate) delay: Option<Delay>,
    /// Random seed of the first run
    #[arg(long, value_name = "N", default_value = "0", value_parser = number)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) expiry: ExpiryArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) allow: AllowArgs,
    /// Size of the window in which patterns are found
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u8).range(2..))]
    pub(crate) window: u8,
    /// What a window entry keeps: precise (first access, last write, last read) or paper (one access)
    #[arg(long, value_name = "HOW", default_value = "precise", hide_possible_values = true)]
    pub(crate) windows: WindowName,
    /// Suspicion formula: jaccard, tarantula, ochiai, or dstar
    #[arg(long, value_name = "FORMULA", default_value = "jaccard", hide_possible_values = true)]
    pub(crate) score: FormulaName,
    /// Add runs to those in the output directory
    #[arg(long, conflicts_with = "from")]
    pub(crate) resume: bool,
    /// Compare the runs saved in DIR; a program, if given, is executed only to check suspects
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
    /// Do not check suspects by forcing them on passing runs
    #[arg(long)]
    pub(crate) no_confirm: bool,
    /// Number of patterns and pairs to show [default: 5; with --json, all]
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) count: Option<u64>,
    /// Write a Graphviz drawing of the top pattern to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) dot: Option<PathBuf>,
    /// Also print the window sizes that patterns needed
    #[arg(long)]
    pub(crate) histogram: bool,
    /// Output directory for runs and report.json
    #[arg(short, long, value_name = "DIR", default_value = "raddle-out")]
    pub(crate) output: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Print findings only
    #[arg(long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) expected: ExpectedArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// What a window entry keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WindowName {
    /// The first access, the last write and the last read.
    Precise,
    /// One access: a write if there was one.
    Paper,
}

/// A suspicion formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormulaName {
    /// failed with / (all failed + passed with).
    Jaccard,
    /// Share of failing runs with it / (that + share of passing runs with it).
    Tarantula,
    /// failed with / sqrt(all failed * all with).
    Ochiai,
    /// failed with squared / (passed with + failed without).
    Dstar,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Run twice and compare the runs event by event
    #[arg(long, conflicts_with = "clip")]
    pub(crate) verify: bool,
    #[command(flatten)]
    pub(crate) execution: ExecutionArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Output file
    #[arg(short, long, value_name = "TRACE")]
    pub(crate) output: PathBuf,
    /// Record every access; by default, an access that a thread repeats between two
    /// synchronizations (same code, same memory) is only counted from its third time on
    #[arg(long)]
    pub(crate) every: bool,
    #[command(flatten)]
    pub(crate) execution: ExecutionArgs,
}

/// One execution.
#[derive(Debug, Args)]
pub(crate) struct ExecutionArgs {
    /// Save the run as a clip, for `raddle replay`
    #[arg(long, value_name = "CLIP")]
    pub(crate) clip: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) expected: ExpectedArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// Limits of a command that executes the program many times.
#[derive(Debug, Args)]
pub(crate) struct BudgetArgs {
    /// Maximum number of executions [default: 2000]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) runs: Option<u64>,
    /// Time limit [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) time: Option<f64>,
    /// Number of executions in parallel [default: one per processor]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) jobs: Option<u64>,
}

impl BudgetArgs {
    /// Maximum number of executions.
    pub(crate) fn runs_max(&self) -> usize {
        self.runs.unwrap_or(2000) as usize
    }

    /// Time limit.
    pub(crate) fn time_max(&self) -> Duration {
        Duration::from_secs_f64(self.time.unwrap_or(60.0).min(1e9))
    }

    /// Whether the user has set a limit, and so wants it used up.
    pub(crate) const fn is_given(&self) -> bool {
        self.runs.is_some() || self.time.is_some()
    }
}

/// How results are printed.
#[derive(Debug, Args)]
pub(crate) struct TalkArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Print findings only
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// When a run counts as one that does not end.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LimitArgs {
    /// Number of steps after which a run counts as a hang; 0 for no limit [default: 10^10; for
    /// hunt, after the first run, 50 times the steps of that one, but 50 to 200 million, or 20 times
    /// if that is more; for localize, 10^9]
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) max_steps: Option<u64>,
    /// Number of steps that threads may spin without progress before the run counts as a livelock; 0
    /// for no limit [default: 10 million; for hunt, after the first run, 20 times the steps of that
    /// one, but at least 4 million]
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) max_idle: Option<u64>,
}

/// When deadlines expire.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ExpiryArgs {
    /// When sleeps and time-outs may end while other threads can run: idle (never), fair (if each of
    /// them had its share of steps, or is delayed by up to 10 ms), or any (at any time)
    #[arg(long, value_name = "WHEN", default_value = "fair", hide_possible_values = true)]
    pub(crate) expiry: ExpiryName,
    /// The former name of --expiry any
    #[arg(long, hide = true, conflicts_with = "expiry")]
    early_sleepers: bool,
}

impl ExpiryArgs {
    /// What was typed.
    pub(crate) fn name(self) -> ExpiryName {
        if self.early_sleepers { ExpiryName::Any } else { self.expiry }
    }
}

/// When deadlines expire beside threads that can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExpiryName {
    /// Never.
    Idle,
    /// When each of them had its share.
    Fair,
    /// At any time.
    Any,
}

impl ExpiryName {
    /// The rule of this name.
    pub(crate) fn expiry(self) -> Expiry {
        match self {
            Self::Idle => Expiry::IDLE,
            Self::Fair => Expiry::FAIR,
            Self::Any => Expiry::ANY,
        }
    }

    /// The name, as it is typed.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Fair => "fair",
            Self::Any => "any",
        }
    }
}

/// What does not end a run, and which notes are left out.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct AllowArgs {
    /// Let runs go on where raddle would end them, everywhere or only in the function WHERE:
    /// use-after-free, double-free, foreign-unlock, destroyed, misuse (includes the last two), or
    /// self-deadlock; or leave out notes: handler-errno, handler-unsafe, or leak; several are
    /// separated by commas
    #[arg(long, value_name = "WHAT[@WHERE]")]
    pub(crate) allow: Vec<AllowedList>,
}

/// How threads are scheduled.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlanArgs {
    /// Scheduling policy: random, pct, pos, rr (each thread until it blocks), or free (threads run in
    /// parallel)
    #[arg(long, value_name = "NAME", default_value = "random")]
    pub(crate) policy: Order,
    /// Random seed; the same seed gives the same run
    #[arg(long, value_name = "N", default_value = "0", value_parser = number)]
    pub(crate) seed: u64,
    /// For --policy pct: number of priority changes [default: 3]
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<u32>,
    /// For --policy pct: expected number of steps in the run [default: guessed from the seed]
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) expect_steps: Option<u64>,
    /// For --policy free: delay accesses with probability P by up to US microseconds
    #[arg(long, value_name = "P:US")]
    pub(crate) delay: Option<Delay>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Allow spurious wake-ups of condition variables, as POSIX does
    #[arg(long)]
    pub(crate) spurious: bool,
    #[command(flatten)]
    pub(crate) expiry: ExpiryArgs,
    #[command(flatten)]
    pub(crate) allow: AllowArgs,
}

/// What makes a run pass; by default, exit status 0.
#[derive(Debug, Args)]
pub(crate) struct ExpectedArgs {
    /// Pass runs that exit with this status
    #[arg(long, value_name = "STATUS")]
    pub(crate) expect_exit: Option<u8>,
    /// Pass runs whose standard output equals this file
    #[arg(long, value_name = "FILE")]
    pub(crate) expect_stdout: Option<PathBuf>,
    /// Pass runs that this shell command accepts with status 0; $RADDLE_STATUS is the exit status,
    /// $RADDLE_STDOUT a file with the standard output
    #[arg(long, value_name = "COMMAND")]
    pub(crate) oracle: Option<String>,
    /// Time limit of the oracle; 0 for none. A run whose oracle is killed or takes longer is not
    /// judged [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "oracle")]
    pub(crate) oracle_timeout: Option<f64>,
}

/// What to run.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// Time limit of a single run; 0 for none [default: 60; for hunt and localize, 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<f64>,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// The program and its arguments, after all options; a .c, .cc, .cpp, .cxx, or .rs file is
    /// compiled first
    #[arg(trailing_var_arg = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

/// The input and environment of a program.
#[derive(Clone, Debug, Args)]
pub(crate) struct InputArgs {
    /// File to use as the program's standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) stdin: Option<PathBuf>,
    /// Set an environment variable of the program
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Print the numbers of events, threads, locations, and locks
    Stats {
        /// The trace
        trace: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print the events, one per line
    Show {
        /// The trace
        trace: PathBuf,
        /// Print only the events of this thread (name or number)
        #[arg(long, value_name = "THREAD")]
        thread: Option<String>,
        /// Number of the first event
        #[arg(long, value_name = "N", default_value = "0", value_parser = number)]
        from: u64,
        /// Number of events to print
        #[arg(long, value_name = "N", value_parser = number)]
        count: Option<u64>,
        /// Also print function entries and exits
        #[arg(long)]
        calls: bool,
    },
    /// Convert a trace to the format of another tool
    Export {
        /// The trace
        trace: PathBuf,
        /// Format: std, the text format of the RAPID tools
        #[arg(long, default_value = "std", hide_possible_values = true)]
        format: Format,
        /// Output file [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Make a trace from a file of another tool
    Import {
        /// The file to import, or - for standard input
        text: PathBuf,
        /// Format: std, the text format of the RAPID tools
        #[arg(long, default_value = "std", hide_possible_values = true)]
        format: Format,
        /// Output file
        #[arg(short, long, value_name = "TRACE")]
        output: PathBuf,
    },
}

/// The trace format of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The text format of the RAPID tools.
    Std,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The clip
    pub(crate) clip: PathBuf,
    /// Number of replays
    #[arg(long, value_name = "N", default_value = "1", value_parser = positive)]
    pub(crate) times: u64,
    /// Number of replays in parallel [default: one per processor]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) jobs: Option<u64>,
    /// Replay under gdb
    #[arg(long, conflicts_with_all = ["times", "json"])]
    pub(crate) gdb: bool,
    /// Replay even if the program was rebuilt after the clip was made
    #[arg(long)]
    pub(crate) any_build: bool,
    /// Program to run instead of the one the clip names
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    /// Time limit of a single run; 0 for none [default: the clip's]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<f64>,
    #[command(flatten)]
    pub(crate) allow: AllowArgs,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    /// The trace
    pub(crate) trace: PathBuf,
    /// File with patterns to look for in addition to the built-in ones
    #[arg(long, value_name = "FILE")]
    pub(crate) patterns: Option<PathBuf>,
    /// Number of anomalies to show, most promising first [default: 50; with --json, all]
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) count: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct MinimizeArgs {
    /// The clip
    pub(crate) clip: PathBuf,
    /// Output file [default: overwrite the clip]
    #[arg(short, long, value_name = "CLIP")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    #[command(flatten)]
    pub(crate) allow: AllowArgs,
}

#[derive(Debug, Args)]
pub(crate) struct IsolateArgs {
    /// A clip that fails
    #[arg(conflicts_with_all = ["command", "stdin", "env"])]
    pub(crate) clip: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
    /// Time limit of a single run; 0 for none [default: the clip's, or 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<f64>,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) allow: AllowArgs,
    #[command(flatten)]
    pub(crate) expected: ExpectedArgs,
    /// Instead of a clip: a program that fails in every run, with its arguments; a program with one
    /// thread need not be built for raddle
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct CompilerArgs {
    /// Arguments for the compiler
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// A program to check
    pub(crate) program: Option<PathBuf>,
}

/// Parses the command line. Prints help and exits if the user asked for it.
pub(crate) fn parse() -> Result<Raddle, anyhow::Error> {
    let words: Vec<OsString> = std::env::args_os().collect();
    Raddle::try_parse_from(&words).map_err(|error| {
        if !error.use_stderr() {
            error.exit();
        }
        anyhow::anyhow!("{}; see {} --help", complaint(&error, &words), command_of(&words))
    })
}

/// What is wrong with the command line, in one sentence.
fn complaint(error: &clap::Error, words: &[OsString]) -> String {
    if let (ErrorKind::UnknownArgument, Some(ContextValue::String(argument))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
        && argument.starts_with('-')
    {
        // A negative number is a value, and no option takes one.
        let option = words.iter().zip(words.iter().skip(1)).find(|(_, word)| **word == **argument);
        return match option {
            Some((option, _)) if argument.parse::<f64>().is_ok() => {
                format!("invalid value {argument} for {}", option.display())
            }
            _ => format!("unknown option {argument}"),
        };
    }
    // The rest is advice and usage.
    let text = error.to_string();
    let first: Vec<_> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let sentence = first.join(" ");
    sentence.strip_prefix("error: ").unwrap_or(&sentence).to_owned()
}

/// The command that was typed, as far as it is known: `raddle`, `raddle hunt`, `raddle trace show`.
fn command_of(words: &[OsString]) -> String {
    let mut command = Raddle::command();
    let mut name = command.get_name().to_owned();
    for word in words.iter().skip(1) {
        let Some(next) = command.find_subcommand(word).cloned() else { break };
        command = next;
        name = format!("{name} {}", command.get_name());
    }
    name
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}", u64::MAX))
}

fn positive(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("expected a whole number of at least 1".into()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(seconds),
        _ => Err("expected a number of seconds".into()),
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Raddle::command().debug_assert();
    }

    fn command(line: &str) -> Vec<OsString> {
        match Raddle::try_parse_from(line.split_whitespace()).expect(line).command {
            Command::Hunt(args) => args.target.command,
            Command::Run(args) => args.execution.target.command,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_program_keeps_its_own_options() {
        assert_eq!(
            command("raddle hunt --seed 3 ./program -v --seed 4"),
            ["./program", "-v", "--seed", "4"]
        );
        assert_eq!(command("raddle run -- ./program -- x"), ["./program", "--", "x"]);
        assert_eq!(command("raddle hunt -- -weird --html"), ["-weird", "--html"]);
    }

    #[test]
    fn an_option_that_does_not_exist_is_named() {
        for command in ["hunt", "run", "record -o trace", "localize", "isolate", "replay"] {
            let line = format!("raddle {command} --html x ./program");
            let error = Raddle::try_parse_from(line.split_whitespace()).expect_err(&line);
            assert_eq!(complaint(&error, &[]), "unknown option --html");
        }
        let error = Raddle::try_parse_from(["raddle", "doctor", "a", "b"]).expect_err("too many");
        assert_eq!(complaint(&error, &[]), "unexpected argument 'b' found");
        let words = ["raddle", "run", "--seed", "-1", "./program"].map(OsString::from);
        let error = Raddle::try_parse_from(&words).expect_err("a negative number");
        assert_eq!(complaint(&error, &words), "invalid value -1 for --seed");
    }

    #[test]
    fn errors_point_to_the_help_of_their_command() {
        let of = |line: &str| command_of(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(of("raddle"), "raddle");
        assert_eq!(of("raddle --html"), "raddle");
        assert_eq!(of("raddle hunt --html run"), "raddle hunt");
        assert_eq!(of("raddle trace show --html"), "raddle trace show");
    }
}
