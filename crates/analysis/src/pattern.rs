//! Patterns: accesses in an order that should not happen, as data.
//!
//! After PECAN: a pattern is a sequence of accesses by abstract threads to abstract variables, in
//! the failing order. The language and the patterns of one variable are in `patterns.txt`; those
//! of two variables follow from their definition ([`two_variables`]).

use std::fmt;

/// Accesses in an order that should not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// Its name.
    pub name: String,
    /// The kind of violation.
    pub kind: PatternKind,
    /// The accesses, in the failing order.
    pub events: Vec<Event>,
}

/// The kind of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternKind {
    /// Two adjacent conflicting accesses.
    Race,
    /// One variable.
    Atomicity,
    /// Two variables.
    MultiVariable,
}

/// An access of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Whether it writes.
    pub writes: bool,
    /// The thread: 1 or 2.
    pub thread: u8,
    /// The variable: 0 for x, 1 for y.
    pub variable: u8,
}

/// Why a text is not a list of patterns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct PatternError {
    /// Line number, from 1.
    pub line: usize,
    /// What is wrong and how to fix it.
    pub what: String,
}

/// The built-in patterns.
#[must_use]
pub fn built_in() -> Vec<Pattern> {
    let mut patterns = parse(include_str!("patterns.txt")).expect("our own file");
    patterns.extend(two_variables());
    patterns
}

/// Parses a list of patterns.
pub fn parse(text: &str) -> Result<Vec<Pattern>, PatternError> {
    let lines = text.lines().enumerate().filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    lines
        .map(|(at, line)| pattern(line).map_err(|what| PatternError { line: at + 1, what }))
        .collect()
}

fn pattern(line: &str) -> Result<Pattern, String> {
    let mut words = line.split_whitespace();
    let (Some(name), Some(kind)) = (words.next(), words.next()) else {
        return Err("a pattern is NAME KIND EVENT EVENT …".into());
    };
    let kind = match kind {
        "race" => PatternKind::Race,
        "atomicity" => PatternKind::Atomicity,
        "multi-variable" => PatternKind::MultiVariable,
        other => return Err(format!("`{other}` is not race, atomicity or multi-variable")),
    };
    let events: Vec<_> = words.map(event).collect::<Result<_, _>>()?;
    let pattern = Pattern { name: name.to_owned(), kind, events };
    pattern.check()?;
    Ok(pattern)
}

fn event(word: &str) -> Result<Event, String> {
    let wrong = || format!("`{word}` is not an event like R1x or W2y");
    let [op, thread, variable] = word.as_bytes() else { return Err(wrong()) };
    Ok(Event {
        writes: match op {
            b'R' => false,
            b'W' => true,
            _ => return Err(wrong()),
        },
        thread: match thread {
            b'1' => 1,
            b'2' => 2,
            _ => return Err(wrong()),
        },
        variable: match variable {
            b'x' => 0,
            b'y' => 1,
            _ => return Err(wrong()),
        },
    })
}

impl Pattern {
    /// The positions of a thread's accesses in the pattern.
    #[must_use]
    pub fn of_thread(&self, thread: u8) -> Vec<usize> {
        (0..self.events.len()).filter(|&at| self.events[at].thread == thread).collect()
    }

    /// Whether it is about two variables.
    #[must_use]
    pub fn has_two_variables(&self) -> bool {
        self.events.iter().any(|event| event.variable == 1)
    }

    fn check(&self) -> Result<(), String> {
        for thread in [1, 2] {
            let own = self.of_thread(thread);
            if own.is_empty() || own.len() > 2 {
                return Err(format!(
                    "thread {thread} has {} events; each of the threads 1 and 2 needs one or two",
                    own.len()
                ));
            }
            if self.has_two_variables()
                && (own.len() != 2 || self.events[own[0]].variable == self.events[own[1]].variable)
            {
                return Err(format!(
                    "with two variables each thread touches both once; thread {thread} does not"
                ));
            }
        }
        let two = self.kind == PatternKind::MultiVariable;
        if two != self.has_two_variables() {
            return Err("a pattern is multi-variable if it has x and y, and only then".into());
        }
        if self.kind == PatternKind::Race && self.events.len() != 2 {
            return Err("a race is two events".into());
        }
        if !self.events.iter().any(|event| event.writes) {
            return Err("nobody writes, so the order does not matter".into());
        }
        Ok(())
    }
}

/// Prints the pattern as its file has it.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, event) in self.events.iter().enumerate() {
            let dash = if at == 0 { "" } else { "-" };
            let op = if event.writes { 'W' } else { 'R' };
            write!(f, "{dash}{op}{}", event.thread)?;
            if self.has_two_variables() {
                write!(f, "{}", if event.variable == 0 { 'x' } else { 'y' })?;
            }
        }
        Ok(())
    }
}

/// The violations of two units that each access x and y once, by definition: no serial order of
/// the units has every conflict in the same direction, and no part of the pattern is already a
/// violation.
///
/// For units (a on one variable, b on the other) and (c, d), the conflicts on x and on y must
/// point in opposite directions, or some serial order agrees. Say a's conflict points to the
/// second unit and b's from it: then both accesses of the second unit can be moved between a and
/// b, past accesses that they do not conflict with. So every violation is equivalent to one in
/// which one unit lies within the other, and those are listed.
#[must_use]
pub fn two_variables() -> Vec<Pattern> {
    let mut patterns = Vec::new();
    for bits in 0..32_u8 {
        let writes = |bit: u8| bits >> bit & 1 == 1;
        let swapped = writes(4);
        let event = |bit, thread, variable| Event { writes: writes(bit), thread, variable };
        let (a, b) = (event(0, 1, 0), event(1, 1, 1));
        let (on_x, on_y) = (event(2, 2, 0), event(3, 2, 1));
        if !(a.writes || on_x.writes) || !(b.writes || on_y.writes) {
            continue;
        }
        let inner = if swapped { [on_y, on_x] } else { [on_x, on_y] };
        let events = vec![a, inner[0], inner[1], b];
        let mut pattern = Pattern { name: String::new(), kind: PatternKind::MultiVariable, events };
        pattern.name = pattern.to_string();
        patterns.push(pattern);
    }
    patterns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_error(text: &str, expect: &str) {
        assert_eq!(parse(text).expect_err(text).to_string(), expect);
    }

    #[test]
    fn the_built_in_patterns_are_well_formed() {
        let patterns = built_in();
        assert_eq!(patterns.len(), 3 + 5 + 18);
        for pattern in &patterns {
            assert_eq!(pattern.check(), Ok(()), "{pattern}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        check_error("x", "line 1: a pattern is NAME KIND EVENT EVENT …");
        check_error("\nx bad R1x", "line 2: `bad` is not race, atomicity or multi-variable");
        check_error("x race R1x W3x", "line 1: `W3x` is not an event like R1x or W2y");
        check_error(
            "x race R1x R1x",
            "line 1: thread 2 has 0 events; each of the threads 1 and 2 needs one or two",
        );
        check_error("x race R1x R2x", "line 1: nobody writes, so the order does not matter");
        check_error(
            "x multi-variable W1x W2y",
            "line 1: with two variables each thread touches both once; thread 1 does not",
        );
    }

    /// Whether an interleaving of two units has the same conflicts as a serial order.
    fn is_serializable(order: &[Event]) -> bool {
        let mut directions = [false; 2];
        for (at, one) in order.iter().enumerate() {
            for two in &order[at + 1..] {
                let conflict = one.variable == two.variable
                    && one.thread != two.thread
                    && (one.writes || two.writes);
                directions[usize::from(one.thread == 1)] |= conflict;
            }
        }
        directions != [true, true]
    }

    /// All interleavings of two sequences.
    fn interleavings(one: &[Event], two: &[Event]) -> Vec<Vec<Event>> {
        match (one, two) {
            ([], rest) | (rest, []) => vec![rest.to_vec()],
            ([a, one_rest @ ..], [b, two_rest @ ..]) => {
                let first = interleavings(one_rest, two).into_iter().map(|rest| ([*a], rest));
                let second = interleavings(one, two_rest).into_iter().map(|rest| ([*b], rest));
                first.chain(second).map(|(head, rest)| [&head[..], &rest].concat()).collect()
            }
        }
    }

    /// The conflicts of an interleaving, with their directions; equal for equivalent
    /// interleavings.
    fn conflicts(order: &[Event]) -> Vec<(Event, Event)> {
        let mut pairs = Vec::new();
        for (at, one) in order.iter().enumerate() {
            for two in &order[at + 1..] {
                let conflict = one.variable == two.variable
                    && one.thread != two.thread
                    && (one.writes || two.writes);
                if conflict {
                    pairs.push((*one, *two));
                }
            }
        }
        pairs.sort_by_key(|(one, two)| (one.variable, one.thread, two.thread));
        pairs
    }

    #[test]
    fn the_two_variable_patterns_are_all_that_there_are_by_brute_force() {
        let patterns = two_variables();
        let swap = |events: &[Event]| -> Vec<Event> {
            events.iter().map(|event| Event { thread: 3 - event.thread, ..*event }).collect()
        };
        let rename = |events: &[Event]| -> Vec<Event> {
            events.iter().map(|event| Event { variable: 1 - event.variable, ..*event }).collect()
        };
        for pattern in &patterns {
            assert!(!is_serializable(&pattern.events), "{pattern}");
        }
        let event = |writes, thread, variable| Event { writes, thread, variable };
        for bits in 0..64_u8 {
            let bit = |n: u8| bits >> n & 1 == 1;
            let order = |flip: bool| if flip { [1, 0] } else { [0, 1] };
            let ([p, q], [r, s]) = (order(bit(4)), order(bit(5)));
            let one = [event(bit(0), 1, p), event(bit(1), 1, q)];
            let two = [event(bit(2), 2, r), event(bit(3), 2, s)];
            for order in interleavings(&one, &two) {
                if is_serializable(&order) {
                    continue;
                }
                let known = patterns.iter().any(|pattern| {
                    let base = pattern.events.clone();
                    let same = |events: &[Event]| {
                        let of = |events: &[Event], thread| -> Vec<Event> {
                            events.iter().filter(|e| e.thread == thread).copied().collect()
                        };
                        conflicts(events) == conflicts(&order)
                            && of(events, 1) == one
                            && of(events, 2) == two
                    };
                    same(&base)
                        || same(&swap(&base))
                        || same(&rename(&base))
                        || same(&swap(&rename(&base)))
                });
                assert!(known, "{order:?}");
            }
        }
    }
}
