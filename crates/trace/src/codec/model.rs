//! What packer and unpacker expect next.
//!
//! Both keep a [`Model`] and feed it the same records, so that both expect the same. All of
//! it is tables without tags: a clash between two entries costs bytes, never correctness.

use std::hint::select_unpredictable;

use crate::record::{Kind, LOW, Record};

/// Places in the table of guesses. For a program of thousands of sites half as many cost
/// 2 % more bytes, and twice as many save 3 %; for others neither matters.
const GUESS_BITS: u32 = 13;
/// How far a site moves the hash of those before it: a guess rests on about four sites.
/// With 3 or 5 nothing packs better.
const HASH_SHIFT: u32 = 4;
/// Places in the table of habits, which sites and threads share: it grows with the number
/// of sites, so that four threads of a small program find room and a block of a large
/// program is not spoilt by clashes (at a fixed 4096 it took twice the bytes).
const HABITS_MIN: usize = 1 << 10;
const HABITS_MAX: usize = 1 << 15;
const HABITS_PER_SITE: usize = 4;
/// Places in the table of jumps. For a list of 5000 nodes a quarter as many cost 25 % more
/// bytes, and four times as many save 2 %.
const JUMP_BITS: u32 = 14;
/// Threads whose contexts are kept apart.
const THREADS: usize = 256;

/// The head of a payload record; a [`Kind::More`] with another one is treated as plain.
pub(super) const MORE_HEAD: u64 = (Kind::More as u64) << 56;

/// The number of a site, from 1 in the order of their first records. Its upper bits are
/// flags, so that the usual case is told by one comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Number(u32);

impl Number {
    /// No site.
    pub(super) const NONE: Self = Self(0);
    /// Of a guess: it was wrong the last time.
    const WEAK: u32 = 1 << 31;
    /// The site is a [`Kind::Switch`].
    const SWITCH: u32 = 1 << 30;
    /// The site is the payload of one, so that another thread goes on behind it.
    const SWITCHED: u32 = 1 << 29;
    const FLAGS: u32 = Self::WEAK | Self::SWITCH | Self::SWITCHED;

    /// Its place among the sites.
    #[inline]
    pub(super) fn index(self) -> usize {
        (self.0 & !Self::FLAGS) as usize
    }

    fn is_weak(self) -> bool {
        self.0 & Self::WEAK != 0
    }

    fn strong(self) -> Self {
        Self(self.0 & !Self::WEAK)
    }

    fn weak(self) -> Self {
        Self(self.0 | Self::WEAK)
    }
}

/// All of a record that stays the same when the same operation is performed again: for
/// a plain record all but its operand, for payload nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub(super) head: u64,
    pub(super) tail: u64,
    // The bits that a value has here.
    pub(super) mask: u64,
    // All ones if the value is the tail, zero if it is the operand.
    in_tail: u64,
    // The bits of the tail that count repeats: of a plain access the extra, otherwise none.
    pub(super) repeats: u64,
    // Whether later values may be near to its own. Return addresses and payload are near to
    // nothing, and would only be in the way between two accesses to an object.
    leads: bool,
}

impl Site {
    pub(super) const PAYLOAD: Self = Self {
        head: MORE_HEAD,
        tail: 0,
        mask: u64::MAX,
        in_tail: u64::MAX,
        repeats: 0,
        leads: false,
    };

    pub(super) fn plain(head: u64, tail: u64) -> Self {
        let is_one_of = |kinds: [Kind; 2]| kinds.map(|kind| kind as u64).contains(&(head >> 56));
        let repeats = if is_one_of([Kind::Read, Kind::Write]) { !LOW } else { 0 };
        Self {
            head: head & !LOW,
            tail: tail & !repeats,
            mask: LOW,
            in_tail: 0,
            repeats,
            leads: !is_one_of([Kind::Enter, Kind::Leave]),
        }
    }

    /// The site that a record belongs to.
    pub(super) fn of(record: Record) -> Self {
        if record.head == MORE_HEAD { Self::PAYLOAD } else { Self::plain(record.head, record.tail) }
    }

    /// The record with this value, and no repeats.
    #[inline]
    pub(super) fn record(&self, value: u64) -> Record {
        Record { head: self.head | value & !self.in_tail, tail: self.tail | value & self.in_tail }
    }

    /// The value of a record of this site.
    pub(super) fn value(&self, record: Record) -> u64 {
        record.head & self.mask & !self.in_tail | record.tail & self.in_tail
    }

    pub(super) fn is_payload(&self) -> bool {
        self.in_tail != 0
    }

    /// What it adds to the hash of a context.
    fn mix(&self) -> u32 {
        // The lower bits of a code address are the ones that differ.
        (self.tail ^ self.tail >> 9) as u32
    }
}

/// How the next value at a site follows from what is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum Rule {
    /// As far from the last value here as that was from the one before.
    #[default]
    Stride = 0,
    /// As far from the thread's last value that [leads](Site::leads) as it was the last time.
    First = 1,
    /// As far from the one before that as it was the last time.
    Second = 2,
    /// What followed the last value here when it was here before.
    Jump = 3,
}

impl Rule {
    pub(super) const ALL: [Self; 4] = [Self::Stride, Self::First, Self::Second, Self::Jump];
}

/// The values of a site, as one thread performs it. Learnt at surprises only, but for
/// `last`: what is as expected teaches nothing.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Habit {
    last: u64,
    // What the rule adds: one of those below, or nothing for a jump.
    add: u64,
    rule: Rule,
    stride: u64,
    // The last distance, which becomes the stride when it is seen again. So a loop that
    // starts over costs one surprise and not two.
    distance: u64,
    first: u64,
    second: u64,
    // The last repeats, where a record has them.
    repeats: u64,
}

/// What is expected after a context.
#[derive(Clone, Copy, Default)]
struct Guess {
    site: Number,
    mix: u32,
}

/// Where a thread is.
#[derive(Clone, Copy, Default)]
pub(super) struct Context {
    hash: u32,
    site: Number,
    // What moves this thread's habits away from those of others.
    shift: u32,
    thread: u32,
    // Its last value that leads, and the one before.
    first: u64,
    second: u64,
}

/// What comes next, unless it is a surprise.
pub(super) struct Expected {
    pub(super) record: Record,
    guess: Guess,
    value: u64,
    slot: usize,
    leads: bool,
}

/// The state of packer and unpacker.
pub(super) struct Model {
    pub(super) sites: Vec<Site>,
    pub(super) numbers: Vec<Number>,
    // By site: what followed it the last time when that was a surprise.
    nexts: Vec<Number>,
    guesses: Box<[Guess; 1 << GUESS_BITS]>,
    // invariant: as many as a power of two
    habits: Vec<Habit>,
    jumps: Box<[u64; 1 << JUMP_BITS]>,
    threads: Box<[Context; THREADS]>,
    // The thread that a switch names, from its record to its payload.
    to: u32,
    pub(super) context: Context,
}

impl Model {
    pub(super) fn new() -> Self {
        let mut model = Self {
            sites: Vec::new(),
            numbers: Vec::new(),
            nexts: Vec::new(),
            guesses: table(),
            habits: Vec::new(),
            jumps: table(),
            threads: table(),
            to: 0,
            context: Context::default(),
        };
        model.reset();
        model
    }

    /// Forgets everything.
    pub(super) fn reset(&mut self) {
        self.sites.clear();
        self.numbers.clear();
        self.nexts.clear();
        self.guesses.fill(Guess::default());
        self.habits.clear();
        self.habits.resize(HABITS_MIN, Habit::default());
        self.jumps.fill(0);
        self.threads.fill(Context::default());
        self.to = 0;
        self.context = Context::default();
        // Number 0 means «none», and is a plain site of a kind that no record has.
        self.add(Site::plain(0, 0));
    }

    /// What comes next, if that is an everyday matter.
    #[inline(always)]
    pub(super) fn expected(&self, context: &Context) -> Option<Expected> {
        let guess = self.guesses[context.place()];
        if guess.site.0 & Number::FLAGS != 0 {
            return None;
        }
        let site = self.sites.get(guess.site.0 as usize)?;
        let slot = self.slot(guess.site, context);
        let value = self.usual(slot, context) & site.mask;
        let mut record = site.record(value);
        record.tail |= self.habits[slot].repeats & site.repeats;
        Some(Expected { record, guess, value, slot, leads: site.leads })
    }

    /// It came as expected.
    #[inline(always)]
    pub(super) fn confirm(&mut self, context: &Context, expected: &Expected) -> Context {
        self.habits[expected.slot].last = expected.value;
        context.after(expected.guess, expected.value, expected.leads)
    }

    /// The guess, everyday or not.
    pub(super) fn guess(&self) -> Number {
        self.guesses[self.context.place()].site.strong()
    }

    /// What followed the site before.
    pub(super) fn next(&self) -> Number {
        self.nexts[self.context.site.index()]
    }

    /// A new site.
    pub(super) fn add(&mut self, site: Site) -> Number {
        let number = self.sites.len() as u32;
        let flag = if site.is_payload() && self.context.site.0 & Number::SWITCH != 0 {
            Number::SWITCHED
        } else if !site.is_payload() && site.head >> 56 == Kind::Switch as u64 {
            Number::SWITCH
        } else {
            0
        };
        self.sites.push(site);
        self.numbers.push(Number(number | flag));
        self.nexts.push(Number::NONE);
        let n_habits = self.habits.len();
        if self.sites.len() * HABITS_PER_SITE > n_habits && n_habits < HABITS_MAX {
            // Each habit stays where it is and is copied to where else it would now be.
            self.habits.extend_from_within(..);
        }
        Number(number | flag)
    }

    /// What the rule of the site's habit gives.
    pub(super) fn usual_of(&self, site: Number) -> u64 {
        self.usual(self.slot(site, &self.context), &self.context) & self.sites[site.index()].mask
    }

    /// What each rule gives, in the order of [`Rule::ALL`].
    pub(super) fn by_rule(&self, site: Number) -> [u64; 4] {
        let slot = self.slot(site, &self.context);
        let habit = &self.habits[slot];
        let mask = self.sites[site.index()].mask;
        [
            habit.last.wrapping_add(habit.stride) & mask,
            self.context.first.wrapping_add(habit.first) & mask,
            self.context.second.wrapping_add(habit.second) & mask,
            self.jumps[jump(slot, habit.last)] & mask,
        ]
    }

    /// The values that a literal may be told from: the last one here, the thread's last one.
    pub(super) fn bases(&self, site: Number) -> [u64; 2] {
        [self.habits[self.slot(site, &self.context)].last, self.context.first]
    }

    /// The site was as guessed.
    pub(super) fn affirm(&mut self) {
        let guess = &mut self.guesses[self.context.place()];
        guess.site = guess.site.strong();
    }

    /// The site was another one than guessed. A guess is given up when it is wrong twice in
    /// a row, so that a loop's end costs one surprise and not two.
    pub(super) fn correct(&mut self, site: Number) {
        let before = self.context.site.index();
        self.nexts[before] = site;
        let mix = self.sites[site.index()].mix();
        let guess = &mut self.guesses[self.context.place()];
        if guess.site == Number::NONE || guess.site.is_weak() {
            *guess = Guess { site, mix };
        } else {
            guess.site = guess.site.weak();
        }
    }

    /// The value was what the habit's rule gives.
    pub(super) fn keep(&mut self, site: Number, value: u64) {
        let slot = self.slot(site, &self.context);
        self.habits[slot].last = value;
    }

    /// The value was another one, which `rule` gives, if any does.
    pub(super) fn learn(&mut self, site: Number, value: u64, rule: Option<Rule>) {
        let slot = self.slot(site, &self.context);
        let habit = &mut self.habits[slot];
        self.jumps[jump(slot, habit.last)] = value;
        let distance = value.wrapping_sub(habit.last);
        if distance == habit.distance {
            habit.stride = distance;
        }
        habit.distance = distance;
        habit.first = value.wrapping_sub(self.context.first);
        habit.second = value.wrapping_sub(self.context.second);
        habit.last = value;
        habit.rule = rule.unwrap_or(habit.rule);
        habit.add = [habit.stride, habit.first, habit.second, 0][habit.rule as usize];
    }

    /// The repeats that are expected, where a record has them.
    pub(super) fn repeats(&mut self, site: Number) -> &mut u64 {
        let slot = self.slot(site, &self.context);
        &mut self.habits[slot].repeats
    }

    /// Goes on behind a record that was not everyday.
    pub(super) fn advance(&mut self, site: Number, value: u64) {
        let context = self.context;
        if site.0 & Number::SWITCHED != 0 {
            self.context = self.threads[self.to as usize % THREADS];
            self.context.thread = self.to;
            // Any odd number that keeps the sites of a small program apart.
            self.context.shift = self.to.wrapping_mul(0x9e5);
            return;
        }
        if site.0 & Number::SWITCH != 0 {
            self.threads[context.thread as usize % THREADS] = context;
            self.to = value as u32;
        }
        let Site { leads, .. } = self.sites[site.index()];
        let mix = self.sites[site.index()].mix();
        self.context = context.after(Guess { site, mix }, value, leads);
    }

    /// The place of a site's habit in a thread.
    #[inline(always)]
    fn slot(&self, site: Number, context: &Context) -> usize {
        site.0.wrapping_add(context.shift) as usize & (self.habits.len() - 1)
    }

    /// What the habit's rule gives. The rule is as unpredictable as the program, so there
    /// is no branch on it but for the rare jump; left to itself the compiler selects between
    /// addresses and waits for what it has just stored there.
    #[inline(always)]
    fn usual(&self, slot: usize, context: &Context) -> u64 {
        let habit = &self.habits[slot];
        if habit.rule == Rule::Jump {
            return self.jumps[jump(slot, habit.last)];
        }
        let near = select_unpredictable(habit.rule == Rule::First, context.first, context.second);
        let from = select_unpredictable(habit.rule == Rule::Stride, habit.last, near);
        from.wrapping_add(habit.add)
    }
}

impl Context {
    #[inline(always)]
    fn place(&self) -> usize {
        self.hash as usize & ((1 << GUESS_BITS) - 1)
    }

    #[inline(always)]
    fn after(&self, guess: Guess, value: u64, leads: bool) -> Self {
        Self {
            hash: self.hash << HASH_SHIFT ^ guess.mix,
            site: guess.site,
            first: select_unpredictable(leads, value, self.first),
            second: select_unpredictable(leads, self.first, self.second),
            ..*self
        }
    }
}

/// The place of a jump from `last`.
#[inline(always)]
fn jump(slot: usize, last: u64) -> usize {
    // Values are often multiples of 64, whose products share their lower bits; folding the
    // upper half in spreads them.
    let wide = u128::from(last ^ (slot as u64) << 48) * 0x9e37_79b9_7f4a_7c15;
    ((wide >> 64) as u64 ^ wide as u64) as usize & ((1 << JUMP_BITS) - 1)
}

fn table<T: Copy + Default, const N: usize>() -> Box<[T; N]> {
    match vec![T::default(); N].into_boxed_slice().try_into() {
        Ok(table) => table,
        Err(_) => unreachable!("a vector of N elements makes a slice of N"),
    }
}
