//! The command line, as it is typed.
//!
//! What the types here say is all that is checked here; each command makes a value of its
//! own from it before anything runs.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use raddle_trial::plan::{Delay, PolicyName};

/// Finds the thread order that breaks a program, replays it, and says what is to blame.
#[derive(Debug, Parser)]
#[command(name = "raddle", version, propagate_version = true)]
pub(crate) struct Raddle {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Find the thread order that breaks a program: predict, re-execute, report
    Hunt(HuntArgs),
    /// Run a program once under control; exits as the program does
    Run(RunArgs),
    /// Run a program once under control and record all that it does
    Record(RecordArgs),
    /// Tell what a trace implies that could go wrong, without executing anything
    Predict(PredictArgs),
    /// Find out which accesses failing runs have in common, and passing runs have not
    Localize(LocalizeArgs),
    /// Make a clip show the same failure with fewer context switches
    Minimize(MinimizeArgs),
    /// Go back from a failure to the write that first went wrong
    Isolate(IsolateArgs),
    /// Look at a trace
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Run a clip again: the same program in the same order
    Replay(ReplayArgs),
    /// Compile C with instrumentation, for raddle
    Cc(CompilerArgs),
    /// Compile C++ with instrumentation, for raddle
    #[command(name = "c++")]
    Cxx(CompilerArgs),
    /// Say whether this machine, or a program, is fit for raddle
    Doctor(DoctorArgs),
}

#[derive(Debug, Args)]
pub(crate) struct HuntArgs {
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    /// Decides every choice
    #[arg(long, value_name = "N", default_value = "0", value_parser = number)]
    pub(crate) seed: u64,
    /// Where clips go
    #[arg(short, long, value_name = "DIR", default_value = "raddle-out")]
    pub(crate) output: PathBuf,
    /// Patterns to look for beside those that raddle knows
    #[arg(long, value_name = "FILE")]
    pub(crate) patterns: Option<PathBuf>,
    /// Use up the budget even if something was found
    #[arg(long)]
    pub(crate) keep_going: bool,
    /// Leave schedules as they were found
    #[arg(long)]
    pub(crate) no_minimize: bool,
    /// Go back from each failure to the write that first went wrong, as `raddle isolate` does
    #[arg(long)]
    pub(crate) isolate: bool,
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
    #[command(flatten)]
    pub(crate) expected: ExpectedArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LocalizeArgs {
    /// At most so many runs; fewer if enough have passed and failed before [default: 100, and up
    /// to 500 as long as fewer than five have failed]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) runs: Option<u64>,
    /// Compare so many failing runs [default: all]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) failed: Option<u64>,
    /// Compare so many passing runs [default: all]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) passed: Option<u64>,
    /// At most so long
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    pub(crate) time: f64,
    /// How many runs at the same time [default: one per processor]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) jobs: Option<u64>,
    /// Who goes next: random, pct, pos, or free (all at once) [default: the first three in turn]
    #[arg(long, value_name = "NAME")]
    pub(crate) policy: Option<PolicyName>,
    /// For free: delay accesses with this probability, up to so many microseconds
    #[arg(long, value_name = "P:US")]
    pub(crate) delay: Option<Delay>,
    /// The first run's; decides every choice
    #[arg(long, value_name = "N", default_value = "0", value_parser = number)]
    pub(crate) seed: u64,
    /// Entries of the window that patterns are looked for in
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u8).range(2..))]
    pub(crate) window: u8,
    /// What an entry keeps: precise (first access, last write and read) or paper (one access)
    #[arg(long, value_name = "HOW", default_value = "precise", hide_possible_values = true)]
    pub(crate) windows: WindowName,
    /// How suspicion is computed: jaccard, tarantula, ochiai or dstar
    #[arg(long, value_name = "FORMULA", default_value = "jaccard", hide_possible_values = true)]
    pub(crate) score: FormulaName,
    /// Add runs to those that are in the output directory
    #[arg(long, conflicts_with = "from")]
    pub(crate) resume: bool,
    /// Compare the runs that are kept there; a program is only executed to check suspects
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,
    /// Do not check suspects by executing them
    #[arg(long)]
    pub(crate) no_confirm: bool,
    /// How many patterns and pairs to show [default: 5, with --json all]
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) count: Option<u64>,
    /// Draw the first pattern, for Graphviz
    #[arg(long, value_name = "FILE")]
    pub(crate) dot: Option<PathBuf>,
    /// Tell how large the windows were that patterns needed
    #[arg(long)]
    pub(crate) histogram: bool,
    /// Where runs are kept
    #[arg(short, long, value_name = "DIR", default_value = "raddle-out")]
    pub(crate) output: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Say nothing but what was found
    #[arg(long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) expected: ExpectedArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// What an entry of a window keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WindowName {
    /// The first access, the last write and the last read.
    Precise,
    /// One access: a write if there was one.
    Paper,
}

/// How suspicion is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormulaName {
    /// failed with / (all failed + passed with).
    Jaccard,
    /// By shares.
    Tarantula,
    /// By the cosine.
    Ochiai,
    /// failed with squared / (passed with + failed without).
    Dstar,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Run twice and compare event by event
    #[arg(long, conflicts_with = "clip")]
    pub(crate) verify: bool,
    #[command(flatten)]
    pub(crate) execution: ExecutionArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Where the trace goes
    #[arg(short, long, value_name = "TRACE")]
    pub(crate) output: PathBuf,
    /// Record each access; without this, what a thread does for the third time between two
    /// synchronizations, at the same place in the code and in memory, is counted only
    #[arg(long)]
    pub(crate) every: bool,
    #[command(flatten)]
    pub(crate) execution: ExecutionArgs,
}

/// One execution.
#[derive(Debug, Args)]
pub(crate) struct ExecutionArgs {
    /// Keep the run, so that it can be replayed
    #[arg(long, value_name = "CLIP")]
    pub(crate) clip: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) expected: ExpectedArgs,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// What many executions may cost.
#[derive(Debug, Args)]
pub(crate) struct BudgetArgs {
    /// At most so many executions
    #[arg(long, value_name = "N", default_value = "2000", value_parser = positive)]
    pub(crate) runs: u64,
    /// At most so long
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub(crate) time: f64,
    /// How many executions at the same time [default: one per processor]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) jobs: Option<u64>,
}

/// How results are told.
#[derive(Debug, Args)]
pub(crate) struct TalkArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Say nothing but what was found
    #[arg(long)]
    pub(crate) quiet: bool,
}

/// Who goes next.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlanArgs {
    /// Who goes next: random, pct, pos, rr (until blocked), or free (all at once)
    #[arg(long, value_name = "NAME", default_value = "random")]
    pub(crate) policy: PolicyName,
    /// Decides every choice; the same seed gives the same run
    #[arg(long, value_name = "N", default_value = "0", value_parser = number)]
    pub(crate) seed: u64,
    /// For pct: how often a priority changes [default: 3]
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<u32>,
    /// For pct: how many steps the run is expected to take [default: a guess by the seed]
    #[arg(long, value_name = "N", value_parser = number)]
    pub(crate) expect_steps: Option<u64>,
    /// For free: delay accesses with this probability, up to so many microseconds
    #[arg(long, value_name = "P:US")]
    pub(crate) delay: Option<Delay>,
    /// More steps than this are a livelock; 0 for no limit
    #[arg(long, value_name = "N", default_value = "10000000000", value_parser = number)]
    pub(crate) max_steps: u64,
    /// Let condition variables wake for no reason, as POSIX allows
    #[arg(long)]
    pub(crate) spurious: bool,
    /// Let sleeping threads be chosen before their time, as on a machine under load
    #[arg(long)]
    pub(crate) early_sleepers: bool,
}

/// What makes a run pass.
#[derive(Debug, Args)]
pub(crate) struct ExpectedArgs {
    /// A run passes if it exits with this status
    #[arg(long, value_name = "STATUS")]
    pub(crate) expect_exit: Option<u8>,
    /// A run passes if it prints what is in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) expect_stdout: Option<PathBuf>,
    /// A run passes if this command of the shell succeeds; it finds RADDLE_STATUS and the
    /// output in the file RADDLE_STDOUT
    #[arg(long, value_name = "COMMAND")]
    pub(crate) oracle: Option<String>,
}

/// What to run.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// Give up a run after so long; 0 for never [default: 60; for hunt and localize 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<f64>,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// The program and its arguments; a .c, .cc, .cpp or .rs file is compiled first
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

/// What a program finds when it starts.
#[derive(Clone, Debug, Args)]
pub(crate) struct InputArgs {
    /// What the program reads as its standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) stdin: Option<PathBuf>,
    /// Set a variable in the program's environment
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Count what a trace holds
    Stats {
        /// The trace
        trace: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print what happened, an event a line
    Show {
        /// The trace
        trace: PathBuf,
        /// Only events of this thread, by its name or number
        #[arg(long, value_name = "THREAD")]
        thread: Option<String>,
        /// The first event
        #[arg(long, value_name = "N", default_value = "0", value_parser = number)]
        from: u64,
        /// How many events
        #[arg(long, value_name = "N", value_parser = number)]
        count: Option<u64>,
        /// Also function entries and exits
        #[arg(long)]
        calls: bool,
    },
    /// Print a trace in a format of other tools
    Export {
        /// The trace
        trace: PathBuf,
        /// The format: std, the text of the RAPID tools
        #[arg(long, default_value = "std", hide_possible_values = true)]
        format: Format,
        /// Where it goes, if not to standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Make a trace from a format of other tools
    Import {
        /// A text in that format, `-` for standard input
        text: PathBuf,
        /// The format: std, the text of the RAPID tools
        #[arg(long, default_value = "std", hide_possible_values = true)]
        format: Format,
        /// Where the trace goes
        #[arg(short, long, value_name = "TRACE")]
        output: PathBuf,
    },
}

/// A format of other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// The text format of the RAPID tools.
    Std,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The clip
    pub(crate) clip: PathBuf,
    /// How often
    #[arg(long, value_name = "N", default_value = "1", value_parser = positive)]
    pub(crate) times: u64,
    /// How many at the same time [default: one per processor]
    #[arg(long, value_name = "N", value_parser = positive)]
    pub(crate) jobs: Option<u64>,
    /// Under gdb
    #[arg(long, conflicts_with_all = ["times", "json"])]
    pub(crate) gdb: bool,
    /// Even if the program is not the build that the clip was made with
    #[arg(long)]
    pub(crate) any_build: bool,
    /// Use this program in the place of the clip's own
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    /// Give up a run after so long; 0 for never [default: as the clip says]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<f64>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    /// The trace
    pub(crate) trace: PathBuf,
    /// Patterns to look for beside those that raddle knows
    #[arg(long, value_name = "FILE")]
    pub(crate) patterns: Option<PathBuf>,
    /// How many anomalies to show, the most promising first [default: 50, with --json all]
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
    /// Where the smaller clip goes [default: in the place of the clip]
    #[arg(short, long, value_name = "CLIP")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
}

#[derive(Debug, Args)]
pub(crate) struct IsolateArgs {
    /// A clip that fails
    #[arg(conflicts_with_all = ["command", "stdin", "env"])]
    pub(crate) clip: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
    /// Give up an execution after so long; 0 for never [default: as the clip says, or 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<f64>,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) expected: ExpectedArgs,
    /// In the place of a clip: a program that fails whenever it is run, with its arguments; it
    /// need not be built for raddle if it has one thread
    #[arg(last = true, value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct CompilerArgs {
    /// What the compiler is called with
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// A program to look at
    pub(crate) program: Option<PathBuf>,
}

/// What was typed, or what is wrong with it in one sentence. Does not return if the user
/// asked for help.
pub(crate) fn parse() -> Result<Raddle, anyhow::Error> {
    Raddle::try_parse().map_err(|error| {
        if !error.use_stderr() {
            error.exit();
        }
        let text = error.to_string();
        let first: Vec<_> =
            text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
        let sentence = first.join(" ");
        let sentence = sentence.strip_prefix("error: ").unwrap_or(&sentence);
        anyhow::anyhow!("{sentence}; see raddle --help")
    })
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a whole number from 0 to {} is needed", u64::MAX))
}

fn positive(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("a whole number from 1 on is needed".into()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Ok(seconds),
        _ => Err("a number of seconds is needed".into()),
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("a variable is NAME=VALUE".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Raddle::command().debug_assert();
    }
}
