//! Keeps a command within its time, and ends it when the user says so.
//!
//! One thread owns the signals and the clock of the command. When time is up, or the first signal
//! comes, it tells executions, oracles and analyses to stop. The command then reports what it has,
//! and says why it stopped. A command that has not begun to print by [`END`] after that is ended
//! here: with its last words, which say what was found so far, and with everything that it has
//! started. So it does not matter what it is busy with. The second signal ends it at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use raddle_analysis::stop;
use raddle_lab::executor;
use raddle_trial::family;
use raddle_trial::interrupt::{self, Cause};

use crate::exit::Exit;

/// How long names are looked up in traces after the command was told to stop.
const LATE: Duration = Duration::from_millis(400);
/// When a command that was told to stop is ended; all of it has to fit in a second.
const END: Duration = Duration::from_millis(700);
/// Signals that come so soon after the first are the same: `timeout` sends each one twice, to the
/// command and to its group.
const TWICE: Duration = Duration::from_millis(200);
/// How often the state is looked at.
const TICK: Duration = Duration::from_millis(50);

/// Says what was found so far, for a command that cannot say it itself any more.
pub(crate) type LastWords = Box<dyn FnOnce(Cause) -> Exit + Send>;

static STATE: Mutex<State> = Mutex::new(State::new());
static IS_LATE: AtomicBool = AtomicBool::new(false);

struct State {
    deadline: Option<Instant>,
    last_words: Option<LastWords>,
    /// The command has its results.
    is_printing: bool,
    /// The command is being ended.
    is_over: bool,
}

impl State {
    const fn new() -> Self {
        Self { deadline: None, last_words: None, is_printing: false, is_over: false }
    }
}

/// Takes over signals and orphans. Called before other threads are started.
pub(crate) fn install() -> Result<()> {
    interrupt::install()?;
    family::adopt()?;
    std::thread::Builder::new().name("guard".into()).spawn(watch)?;
    Ok(())
}

/// From now on the command has to be done by `deadline`, if there is one. If it cannot say what it
/// has found when it is to stop, `last_words` do.
pub(crate) fn until(deadline: Option<Instant>, last_words: LastWords) {
    let mut state = state();
    state.deadline = deadline;
    state.last_words = Some(last_words);
}

/// The command has its results, and prints them now. Whoever reads them may take their time.
pub(crate) fn print_now() {
    let mut state = state();
    if state.is_over {
        drop(state);
        // The last words are being said, and then the process ends.
        loop {
            std::thread::park();
        }
    }
    state.is_printing = true;
    state.last_words = None;
}

/// Whether the command was told to stop, and there is no time to read whole traces.
pub(crate) fn is_late() -> bool {
    IS_LATE.load(Ordering::Relaxed)
}

/// Exits as a program does that a signal has ended.
pub(crate) fn killed(number: i32) -> Exit {
    Exit::Status(128_u8.saturating_add(number as u8))
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for signals and for the time to pass.
fn watch() {
    let mut stopped_at: Option<Instant> = None;
    loop {
        let now = Instant::now();
        let deadline = state().deadline.filter(|_| stopped_at.is_none());
        let left = deadline.map_or(TICK, |deadline| deadline.saturating_duration_since(now));
        let signal = interrupt::next(left.min(TICK)).unwrap_or_else(|_| {
            std::thread::sleep(TICK);
            None
        });
        if let Some(number) = signal {
            match interrupt::signal() {
                None => {
                    stop_all(Cause::Signal(number));
                    stopped_at = Some(Instant::now());
                }
                Some(_) if stopped_at.is_some_and(|at| at.elapsed() < TWICE) => {}
                Some(_) => leave(killed(number)),
            }
        }
        let is_over = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if stopped_at.is_none() && is_over && !state().is_printing {
            stop_all(Cause::Time);
            stopped_at = deadline;
        }
        let Some(cause) = interrupt::stopped() else { continue };
        let since = stopped_at.map_or(Duration::ZERO, |at| at.elapsed());
        if since >= LATE {
            IS_LATE.store(true, Ordering::Relaxed);
        }
        if since >= END {
            end(cause);
        }
    }
}

fn stop_all(cause: Cause) {
    stop::request();
    interrupt::stop(cause);
}

/// Ends the command, unless it only prints.
fn end(cause: Cause) {
    let last_words = {
        let mut state = state();
        if state.is_printing && cause == Cause::Time {
            return;
        }
        state.is_over = true;
        state.last_words.take().filter(|_| !state.is_printing)
    };
    family::end_all();
    let said = last_words.map(|last_words| last_words(cause));
    match cause {
        Cause::Signal(number) => {
            if said.is_none() {
                eprintln!("raddle: interrupted");
            }
            leave(killed(number));
        }
        Cause::Time => leave(said.unwrap_or(Exit::Unjudged)),
    }
}

/// Leaves at once, and nothing behind.
fn leave(exit: Exit) -> ! {
    family::end_all();
    executor::remove_scratch();
    std::process::exit(i32::from(exit.code()));
}
