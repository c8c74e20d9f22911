//! When a deadline may expire although threads can run.
//!
//! Time is virtual. It passes with steps, and jumps to the next deadline when nobody can run. A
//! thread that sleeps beside busy threads also has to wake up, and how long these take for a step
//! natively is unknown. So time jumps as well if each thread that can run has had its share of
//! steps ([`Expiry::share`]), which grows with the distance: a time-out of 30 seconds must not
//! expire because a thread has worked for a millisecond.
//!
//! A schedule may need more: that a thread wakes up while another one, which could run, is held
//! back. Natively that thread would be late, as it is when the kernel preempts it. Nobody is
//! surprised by a few milliseconds, and few by a second on a busy machine, but no run in which a
//! lock's holder stands still for a minute is a bug report. So the delay is bounded
//! ([`Expiry::delay_ns_max`]), and reported.

/// What a deadline ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A sleep. Programs sleep to let others work for a while.
    Sleep,
    /// A wait for something that another thread may do in time, or the patience of an alarm.
    TimeOut,
}

impl Awaited {
    /// Nanoseconds that pass, at most, while a busy thread makes a step. A step takes about a
    /// nanosecond natively, so both are far from what happens. A sleep of a second costs each busy
    /// thread a million steps; with a time-out it is ten million, since nothing is wrong with a
    /// sleep that ends.
    const fn ns_per_step(self) -> u64 {
        match self {
            Self::Sleep => 1_000,
            Self::TimeOut => 100,
        }
    }

    /// Steps that each busy thread makes, at most, so that an hour costs no more than some seconds.
    const fn n_steps_max(self) -> u64 {
        match self {
            Self::Sleep => 3_000_000,
            Self::TimeOut => 100_000_000,
        }
    }
}

/// When a deadline may expire although threads can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// Steps that each thread that can run performs, at least, before a time-out expires; a tenth of
    /// these before a sleep ends. `u64::MAX` if time never jumps beside such a thread.
    pub n_steps: u64,
    /// How late time may make a thread that can run and has not performed as many.
    pub delay_ns_max: u64,
}

impl Expiry {
    /// [`Expiry::n_steps`] of [`Expiry::FAIR`]. Few enough that short waits beside busy threads
    /// are cheap, and many more than what a thread does natively while another wakes up.
    pub const STEPS: u64 = 50_000;

    /// Only if nobody can run.
    pub const IDLE: Self = Self { n_steps: u64::MAX, delay_ns_max: 0 };
    /// If every thread that can run has had its share, or is late by no more than the kernel's
    /// preemption makes it on any machine.
    pub const FAIR: Self = Self { n_steps: Self::STEPS, delay_ns_max: 10_000_000 };
    /// The same with delays that a busy machine causes now and then.
    pub const LATE: Self = Self { n_steps: Self::STEPS, delay_ns_max: 1_000_000_000 };
    /// Whatever the delay.
    pub const ANY: Self = Self { n_steps: Self::STEPS, delay_ns_max: u64::MAX };

    /// Steps that each thread that can run performs before time jumps so far.
    #[must_use]
    pub const fn share(self, ns: u64, awaited: Awaited) -> u64 {
        let (in_proportion, most) = (ns / awaited.ns_per_step(), awaited.n_steps_max());
        let share = if in_proportion < most { in_proportion } else { most };
        let least = match awaited {
            Awaited::Sleep => self.least_share(),
            Awaited::TimeOut => self.n_steps,
        };
        if share > least { share } else { least }
    }

    /// The smallest share. Programs sleep for microseconds, again and again.
    #[must_use]
    pub const fn least_share(self) -> u64 {
        if self.n_steps == u64::MAX { u64::MAX } else { self.n_steps / 10 }
    }

    /// Whether policies let deadlines expire early, too, and not only schedules that need it.
    #[must_use]
    pub const fn is_early(self) -> bool {
        self.delay_ns_max > Self::FAIR.delay_ns_max
    }
}

impl Default for Expiry {
    fn default() -> Self {
        Self::FAIR
    }
}
