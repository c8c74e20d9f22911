//! Exploration: runs under other schedules, without a prediction.
//!
//! No policy is the best for all bugs. `pct` reaches what needs few preemptions at the right
//! moments, and `pos` treats all orders of conflicting events alike. Both decide little or locally;
//! a failure that needs several preemptions which only values decide comes soonest by plain
//! chance. So each round mixes all three, with fresh seeds and several depths. At first half of
//! the runs are `pct`, since most bugs need one or two preemptions. Once that brings nothing new,
//! half are `random`.

use raddle_trial::{Order, Plan};

/// Explorations per round.
pub(super) const EXPLORATIONS: usize = 16;
/// Changes of priority in `pct` where those that most bugs need ([`Order::in_turn`]) have brought
/// nothing new.
const DEPTH_MAX_LATER: usize = 6;

/// A round of explorations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    /// Its number, from 0.
    pub(super) number: usize,
    /// Whether nothing new has come for long.
    pub(super) is_quiet: bool,
    /// The steps of the first run.
    pub(super) n_steps: u64,
}

impl Round {
    /// The plans of a round. Takes seeds after `seed`.
    pub(super) fn plans(self, plan: &Plan, seed: &mut u64) -> Vec<Plan> {
        let plans = (0..EXPLORATIONS).map(|at| {
            *seed += 1;
            Plan { order: self.order(at), seed: *seed, ..plan.clone() }
        });
        plans.collect()
    }

    fn order(self, at: usize) -> Order {
        if self.is_quiet && at % 4 == 1 {
            let depth = 1 + ((self.number + at / 4) % DEPTH_MAX_LATER) as u32;
            return Order::Pct { depth, n_steps: self.n_steps };
        }
        if self.is_quiet && at % 4 == 3 {
            return Order::Random;
        }
        // Each round begins with another depth.
        Order::in_turn((4 * self.number + at) as u64, self.n_steps)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn shares(is_quiet: bool) -> BTreeMap<&'static str, usize> {
        let round = Round { number: 3, is_quiet, n_steps: 100 };
        let plans = round.plans(&Plan::default(), &mut 7);
        let seeds: BTreeSet<_> = plans.iter().map(|plan| plan.seed).collect();
        assert_eq!((seeds.len(), seeds.first()), (EXPLORATIONS, Some(&8)));
        let mut shares = BTreeMap::new();
        for plan in &plans {
            *shares.entry(plan.order.name()).or_default() += 1;
        }
        shares
    }

    #[test]
    fn every_round_has_every_policy() {
        assert_eq!(shares(false), BTreeMap::from([("pct", 8), ("pos", 4), ("random", 4)]));
        assert_eq!(shares(true), BTreeMap::from([("pct", 4), ("pos", 4), ("random", 8)]));
    }
}
