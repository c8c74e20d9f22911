//! Causes and their effects.
//!
//! An effect is as well confirmed as its cause, and most often more suspect: it always leads to the
//! failure, and not every cause leads to it. But it never comes without its cause, and its cause comes
//! without it.
//!
//! So where nothing is confirmed, a suspect comes before another one if it tells failing from
//! passing runs, runs failed when it was forced, it came about before the other in every run
//! that has the other, and it also came about in runs that do not.

use super::candidate::Candidate;

/// Moves suspects of which all else is equal after those that lead to them; others stay.
pub(super) fn causes_first<T>(alike: &mut [Candidate<T>]) {
    for at in 0..alike.len() {
        alike[at].has_effects = alike.iter().any(|other| leads_to(&alike[at], other));
    }
    for at in 0..alike.len() {
        let rest = &mut alike[at..];
        let is_led = |one: &Candidate<T>| rest.iter().any(|other| leads_to(other, one));
        let first = rest.iter().position(|one| !is_led(one)).unwrap_or(0);
        rest[..=first].rotate_right(1);
    }
}

fn leads_to<T>(one: &Candidate<T>, other: &Candidate<T>) -> bool {
    match (&one.timeline, &other.timeline) {
        (Some(one), Some(other)) => one.leads_to(other),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::candidate::Objections;
    use super::super::timeline::Timeline;
    use super::*;

    /// The order of suspects by when they came about in a failing and two passing runs.
    fn check(suspects: &[(&'static str, [Option<u64>; 3])], wanted: &[&str]) {
        let mut alike: Vec<_> = suspects
            .iter()
            .map(|&(name, [failed, one, two])| Candidate {
                timeline: Some(Timeline { failed: vec![failed], passed: vec![one, two] }),
                ..Candidate::new(name, Objections::default(), 0.0)
            })
            .collect();
        causes_first(&mut alike);
        assert_eq!(alike.iter().map(|one| one.what).collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn an_effect_comes_behind_its_cause() {
        let effect = ("effect", [Some(9), None, None]);
        check(&[effect, ("cause", [Some(3), Some(4), None])], &["cause", "effect"]);
        check(&[effect, ("later", [Some(10), Some(4), None])], &["effect", "later"]);
        check(&[effect, ("never alone", [Some(3), None, None])], &["effect", "never alone"]);
        check(&[effect, ("everywhere", [Some(3), Some(4), Some(4)])], &["effect", "everywhere"]);
    }
}
