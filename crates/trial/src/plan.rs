//! What a run is to do: a checked value, and how it gets into the control block.

use std::ops::Range;
use std::str::FromStr;
use std::sync::atomic::Ordering::Relaxed;

use raddle_trace::allow::{Allowed, Judgement, Word};
use raddle_trace::control::{
    ALLOWED_CODE_MAX, ALONE, BY_SITES, Deliver, LANES_MAX, Layout, Mode, Policy, SPURIOUS, STRICT,
};
use raddle_trace::expiry::Expiry;
use raddle_trace::id::Site;
use raddle_trace::schedule::{Schedule, Step};
use serde::{Deserialize, Serialize};

use crate::shm::Block;

/// What a run is to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Who goes next.
    pub order: Order,
    /// Of all random choices, also those that the target asks for.
    pub seed: u64,
    /// A run with more steps than this does not end; `None` for no limit.
    pub n_steps_max: Option<u64>,
    /// Threads that spin for more steps than this without progress are a livelock; `None` for no
    /// limit.
    pub n_idle_max: Option<u64>,
    /// Condition variables may wake for no reason, as POSIX allows.
    pub spurious: bool,
    /// When a deadline may expire although threads can run.
    pub expiry: Expiry,
    /// Judgements that do not end the run.
    pub allow: Allow,
    /// The schedule to follow counts other steps than the runtime does, so its sites decide
    /// where threads stop.
    pub by_sites: bool,
    /// Nothing came from outside in the run that the schedule to follow was made of, so input that a
    /// thread waits for has to come from another one.
    pub is_alone: bool,
    /// The processor to run on under control; none for any. Runs at the same time get
    /// different ones, or all might start on the same and stay there.
    pub cpu: Option<u32>,
}

/// Judgements that do not end a run, and remarks that are not made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allow {
    words: Vec<Allowed>,
    code: Vec<(Word, Range<Site>)>,
}

impl Allow {
    /// What these words allow. `code_of` finds the code of a function by its name.
    pub fn new<E>(
        words: Vec<Allowed>,
        mut code_of: impl FnMut(&str) -> Result<Vec<Range<Site>>, E>,
    ) -> Result<Self, AllowError<E>> {
        let mut code = Vec::new();
        for Allowed { word, function } in &words {
            let Some(function) = function else { continue };
            let ranges = code_of(function).map_err(AllowError::Function)?;
            code.extend(ranges.into_iter().map(|range| (*word, range)));
        }
        if code.len() > ALLOWED_CODE_MAX {
            return Err(AllowError::TooMuch { n: code.len() });
        }
        Ok(Self { words, code })
    }

    /// The words.
    #[must_use]
    pub fn words(&self) -> &[Allowed] {
        &self.words
    }

    /// Whether freed memory may be used. The target keeps no histories of that.
    #[must_use]
    pub fn reaches_freed_memory(&self) -> bool {
        let bits = Judgement::UseAfterFree.bit() | Judgement::Destroyed.bit();
        self.words.iter().any(|allowed| allowed.word.bits() & bits != 0)
    }

    fn store(&self, block: &Block) {
        let control = block.control();
        let everywhere = self.words.iter().filter(|allowed| allowed.function.is_none());
        let bits = everywhere.fold(0, |bits, allowed| bits | allowed.word.bits());
        control.plan.allowed.store(bits, Relaxed);
        control.plan.n_allowed_code.store(self.code.len() as u32, Relaxed);
        for ((word, range), code) in self.code.iter().zip(&control.allowed_code) {
            code.start.store(range.start.0, Relaxed);
            code.end.store(range.end.0, Relaxed);
            code.set.store(word.bits().into(), Relaxed);
        }
    }
}

/// Why judgements cannot be allowed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllowError<E> {
    /// The code of a function was not found.
    #[error("{0}")]
    Function(E),
    /// The functions are in too many pieces.
    #[error(
        "the functions of --allow have {n} pieces of code, more than {ALLOWED_CODE_MAX}; name fewer functions"
    )]
    TooMuch {
        /// Pieces of code.
        n: usize,
    },
}

/// Who goes next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// Any thread, at random moments.
    Random,
    /// Probabilistic concurrency testing: priorities that change `depth` times in a run
    /// of about `n_steps` steps.
    Pct {
        /// How often a priority changes.
        depth: u32,
        /// How long the run is expected to be; 0 if unknown.
        n_steps: u64,
    },
    /// Partial order sampling: a priority for each event.
    Pos,
    /// A thread runs until it blocks.
    Rr,
    /// A given order.
    Follow {
        /// The order.
        #[serde(with = "as_json")]
        schedule: Schedule,
        /// Whether a step that does not fit ends the run; if not, it is passed over.
        strict: bool,
        /// Who goes next once the schedule has ended.
        after: Policy,
    },
    /// All threads at once, as without raddle.
    Free {
        /// To be inserted at random.
        delay: Option<Delay>,
    },
}

/// The default of [`Plan::n_idle_max`]: a second of spinning under control, or a loop that reads
/// one variable ten million times.
pub const IDLE_MAX: u64 = 10_000_000;

/// Most known bugs need no more than three changes of priority (Burckhardt et al., ASPLOS 2010).
const DEPTH: u32 = 3;

/// Random delays, for runs in which threads are free.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delay {
    /// Probability of a delay at an access.
    pub probability: f64,
    /// Longest delay.
    pub us_max: u32,
}

/// Schedules inside formats that do not describe themselves, which a schedule's own form needs.
mod as_json {
    use raddle_trace::schedule::Schedule;
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de, ser};

    pub(super) fn serialize<S: Serializer>(schedule: &Schedule, to: S) -> Result<S::Ok, S::Error> {
        let text = serde_json::to_string(schedule).map_err(ser::Error::custom)?;
        text.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Schedule, D::Error> {
        serde_json::from_str(&String::deserialize(from)?).map_err(de::Error::custom)
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            order: Order::Random,
            seed: 0,
            n_steps_max: None,
            n_idle_max: Some(IDLE_MAX),
            spurious: false,
            expiry: Expiry::FAIR,
            allow: Allow::default(),
            by_sites: false,
            is_alone: false,
            cpu: None,
        }
    }
}

impl Plan {
    /// Under control or free.
    #[must_use]
    pub fn mode(&self) -> Mode {
        match self.order {
            Order::Free { .. } => Mode::Free,
            Order::Random | Order::Pct { .. } | Order::Pos | Order::Rr | Order::Follow { .. } => {
                Mode::Controlled
            }
        }
    }

    /// Who goes next, unless all are free.
    #[must_use]
    pub fn policy(&self) -> Option<Policy> {
        match self.order {
            Order::Random => Some(Policy::Random),
            Order::Pct { .. } => Some(Policy::Pct),
            Order::Pos => Some(Policy::Pos),
            Order::Rr => Some(Policy::Rr),
            Order::Follow { .. } => Some(Policy::Follow),
            Order::Free { .. } => None,
        }
    }

    /// The control block that such a run needs.
    pub(crate) fn layout(&self) -> Layout {
        match &self.order {
            Order::Free { .. } => Layout { n_follow: 0, n_lanes: LANES_MAX },
            Order::Follow { schedule, .. } => Layout { n_follow: schedule.steps.len(), n_lanes: 1 },
            Order::Random | Order::Pct { .. } | Order::Pos | Order::Rr => {
                Layout { n_follow: 0, n_lanes: 1 }
            }
        }
    }

    /// Writes it down for the target, with the options that are not the plan's to choose.
    pub(crate) fn store(&self, deliver: Deliver, options: u32, block: &Block) {
        let plan = &block.control().plan;
        let option = |given: bool, bit: u32| if given { bit } else { 0 };
        let mut options = options | option(self.spurious, SPURIOUS);
        plan.expiry_steps.store(self.expiry.n_steps, Relaxed);
        plan.delay_ns_max.store(self.expiry.delay_ns_max, Relaxed);
        plan.cpu.store(self.cpu.map_or(-1, |cpu| cpu as i32), Relaxed);
        match &self.order {
            Order::Random | Order::Pos | Order::Rr => {}
            Order::Pct { depth, n_steps } => {
                plan.depth.store(*depth, Relaxed);
                plan.steps_expected.store(*n_steps, Relaxed);
            }
            Order::Follow { schedule, strict, after } => {
                options |= option(*strict, STRICT) | option(self.by_sites, BY_SITES);
                options |= option(self.is_alone, ALONE);
                plan.policy_after.store(*after as u32, Relaxed);
                store_schedule(schedule, block);
            }
            Order::Free { delay } => {
                if let Some(Delay { probability, us_max }) = delay {
                    // Saturates, so that a probability of 1 is the largest number.
                    let scaled = (probability * 2f64.powi(32)) as u32;
                    plan.delay_probability.store(scaled, Relaxed);
                    plan.delay_us_max.store(*us_max, Relaxed);
                }
            }
        }
        plan.mode.store(self.mode() as u32, Relaxed);
        plan.deliver.store(deliver as u32, Relaxed);
        plan.policy.store(self.policy().map_or(0, |policy| policy as u32), Relaxed);
        plan.seed.store(self.seed, Relaxed);
        plan.options.store(options, Relaxed);
        plan.steps_max.store(self.n_steps_max.unwrap_or(0), Relaxed);
        plan.idle_max.store(self.n_idle_max.unwrap_or(0), Relaxed);
        plan.n_lanes.store(block.layout().n_lanes as u32, Relaxed);
        plan.n_follow.store(block.layout().n_follow as u64, Relaxed);
        self.allow.store(block);
    }
}

fn store_schedule(schedule: &Schedule, block: &Block) {
    for (step, slot) in schedule.steps.iter().zip(block.follow()) {
        match *step {
            Step::Run { thread, count, site } => {
                slot.thread.store(thread.0, Relaxed);
                slot.kind.store(0, Relaxed);
                slot.count.store(count, Relaxed);
                slot.site.store(site.0, Relaxed);
            }
            Step::Choose { choose } => {
                slot.thread.store(choose, Relaxed);
                slot.kind.store(1, Relaxed);
            }
        }
    }
}

impl Order {
    /// Every policy that needs no schedule, with its defaults.
    pub const POLICIES: [Self; 5] = [
        Self::Random,
        Self::Pct { depth: DEPTH, n_steps: 0 },
        Self::Pos,
        Self::Rr,
        Self::Free { delay: None },
    ];

    /// The policies that hunts and localization try in turn, and those of `pct` with every depth from
    /// 1 to 4, for a run of about `n_steps` steps.
    #[must_use]
    pub const fn in_turn(nth: u64, n_steps: u64) -> Self {
        match nth % 4 {
            0 => Self::Random,
            1 | 3 => Self::Pct { depth: 1 + (nth / 4 % 4) as u32, n_steps },
            _ => Self::Pos,
        }
    }

    /// Those of [`Order::POLICIES`] under which one thread runs at a time.
    pub fn controlled() -> impl Iterator<Item = Self> {
        Self::POLICIES.into_iter().filter(|order| !matches!(order, Self::Free { .. }))
    }

    /// Whether a different seed gives a different run.
    #[must_use]
    pub const fn is_seeded(&self) -> bool {
        match self {
            Self::Random | Self::Pct { .. } | Self::Pos | Self::Free { .. } => true,
            Self::Rr | Self::Follow { .. } => false,
        }
    }

    /// The names of such policies, as a sentence has them.
    pub fn names(policies: impl IntoIterator<Item = Self>) -> String {
        let names: Vec<_> = policies.into_iter().map(|order| order.name()).collect();
        match names.split_last() {
            Some((last, others)) if !others.is_empty() => {
                format!("{}, or {last}", others.join(", "))
            }
            _ => names.concat(),
        }
    }

    /// The name of the policy.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Pct { .. } => "pct",
            Self::Pos => "pos",
            Self::Rr => "rr",
            Self::Follow { .. } => "follow",
            Self::Free { .. } => "free",
        }
    }
}

/// By the name of a policy, with its defaults.
impl FromStr for Order {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == "follow" {
            return Err("it needs a schedule; use raddle replay CLIP".to_owned());
        }
        let known = Self::POLICIES.into_iter().find(|order| order.name() == name);
        known.ok_or_else(|| format!("expected {}", Self::names(Self::POLICIES)))
    }
}

impl FromStr for Delay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usage = || "expected PROBABILITY:MICROSECONDS, such as 0.01:500".to_owned();
        let (probability, us_max) = text.split_once(':').ok_or_else(usage)?;
        let probability: f64 = probability.parse().map_err(|_| usage())?;
        let us_max = us_max.parse().map_err(|_| usage())?;
        if !(0.0..=1.0).contains(&probability) {
            return Err("expected a probability between 0 and 1".into());
        }
        Ok(Self { probability, us_max })
    }
}

#[cfg(test)]
mod tests {
    use raddle_trace::id::{Site, ThreadId};
    use raddle_trace::remark::Remark;

    use super::*;

    #[test]
    fn a_delay_is_a_probability_and_a_time() {
        assert_eq!("0.25:80".parse(), Ok(Delay { probability: 0.25, us_max: 80 }));
        for wrong in ["", "1", "2:5", "-0.1:5", "nan:5", "0.5:x", "0.5:-1", "0.5:1:2"] {
            assert!(wrong.parse::<Delay>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_policy_is_read_by_its_name() {
        for order in Order::POLICIES {
            assert_eq!(order.name().parse(), Ok(order));
        }
        for wrong in ["", "Random", "follow", "free "] {
            assert!(wrong.parse::<Order>().is_err(), "{wrong}");
        }
        let words = "".parse::<Order>().expect_err("no name");
        assert_eq!(words, format!("expected {}", Order::names(Order::POLICIES)));
        assert_eq!(Order::names([Order::Random, Order::Pos, Order::Rr]), "random, pos, or rr");
    }

    #[test]
    fn searches_take_policies_in_turn() {
        let pct = |depth| Order::Pct { depth, n_steps: 9 };
        let orders: Vec<_> = (0..6).map(|nth| Order::in_turn(nth, 9)).collect();
        let expected = [Order::Random, pct(1), Order::Pos, pct(1), Order::Random, pct(2)];
        assert_eq!(orders, expected);
    }

    #[test]
    fn a_certain_delay_does_not_wrap_to_none() {
        let delay = Some(Delay { probability: 1.0, us_max: 9 });
        let plan = Plan { order: Order::Free { delay }, ..Plan::default() };
        let block = Block::new(plan.layout()).expect("a memory file");
        plan.store(Deliver::Nothing, 0, &block);
        assert_eq!(block.control().plan.delay_probability.load(Relaxed), u32::MAX);
        assert_eq!(block.control().plan.mode.load(Relaxed), Mode::Free as u32);
    }

    #[test]
    fn allowed_judgements_are_written_with_their_code() {
        let words =
            ["misuse", "leak", "use-after-free@f"].map(|word| word.parse().expect("a word"));
        let code = |_: &str| Ok::<_, String>(vec![Site(16)..Site(32), Site(64)..Site(80)]);
        let allow = Allow::new(words.into(), code).expect("little code");
        let plan = Plan { allow, ..Plan::default() };
        let block = Block::new(plan.layout()).expect("a memory file");
        plan.store(Deliver::Nothing, 0, &block);
        let control = block.control();
        let everywhere = Judgement::Misuse.allowed_bits() | Remark::Leak.bit();
        assert_eq!(control.plan.allowed.load(Relaxed), everywhere);
        assert_eq!(control.plan.n_allowed_code.load(Relaxed), 2);
        let second = &control.allowed_code[1];
        assert_eq!((second.start.load(Relaxed), second.end.load(Relaxed)), (64, 80));
        assert_eq!(second.set.load(Relaxed), u64::from(Judgement::UseAfterFree.bit()));
    }

    #[test]
    fn functions_in_many_pieces_are_refused() {
        let piece = |n: u64| Site(2 * n)..Site(2 * n + 1);
        let code = |n: usize| (0..n as u64).map(piece).collect::<Vec<_>>();
        let allow = |n: usize| {
            Allow::new(vec!["misuse@f".parse().expect("a word")], |_| Ok::<_, String>(code(n)))
        };
        assert!(allow(ALLOWED_CODE_MAX).is_ok());
        assert_eq!(allow(1025), Err(AllowError::TooMuch { n: 1025 }));
    }

    #[test]
    fn a_schedule_is_written_step_by_step() {
        let run = Step::Run { thread: ThreadId(2), count: 7, site: Site(5) };
        let schedule = Schedule { steps: vec![run, Step::Choose { choose: 3 }] };
        let order = Order::Follow { schedule, strict: true, after: Policy::Rr };
        let plan = Plan { order, ..Plan::default() };
        let block = Block::new(plan.layout()).expect("a memory file");
        plan.store(Deliver::Nothing, 0, &block);
        let [first, second] = block.follow() else { panic!("two steps") };
        assert_eq!((first.kind.load(Relaxed), first.thread.load(Relaxed)), (0, 2));
        assert_eq!((first.count.load(Relaxed), first.site.load(Relaxed)), (7, 5));
        assert_eq!((second.kind.load(Relaxed), second.thread.load(Relaxed)), (1, 3));
        assert_eq!(block.control().plan.options.load(Relaxed), STRICT);
    }
}
