//! Walks through sketches of functions.

use super::*;
use crate::sketch::Code;

pub(super) const THREAD: ThreadId = ThreadId(0);

/// Walks through a sketch by block labels, and lists each call with its loops, innermost first,
/// and their iterations.
fn check(sketch: &str, walk: &str, expect: &str) {
    let code = Code::sketch(sketch);
    let (labels, sites) = (code.labels.clone(), code.sites.clone());
    let name = |entry: Pc| {
        labels.iter().find(|(_, at)| *at == entry.0).expect("a loop's entry is a block").0.clone()
    };
    let first = labels[0].0.clone();
    let mut tracker = Tracker::new(Functions::new(vec![Box::new(code)]));
    let mut seen = Vec::new();
    for label in walk.split_whitespace() {
        match (label, sites.get(label)) {
            ("gap", _) => tracker.gap(THREAD),
            ("leave", _) => tracker.leave(THREAD),
            (_, None) => {}
            (_, Some(&site)) if label == first => tracker.enter(THREAD, Pc(site)),
            (_, Some(&site)) => {
                let nest = tracker.site(THREAD, Pc(site));
                let text = |iteration: LoopIteration| {
                    let n = iteration.iteration.map_or("?".to_owned(), |n| n.to_string());
                    format!("{}{n}", name(iteration.entry))
                };
                let loop_iterations =
                    tracker.loop_iterations(nest).map_or("unknown".to_owned(), |loop_iterations| {
                        loop_iterations.into_iter().map(text).collect::<Vec<_>>().join(",")
                    });
                seen.push(format!("{label}:{loop_iterations}"));
            }
        }
    }
    assert_eq!(seen.join(" "), expect);
}

#[test]
fn a_loop_counts() {
    check(
        "
        a* -> h
        h* -> h e
        e* ->",
        "a h h h e",
        "h:h0 h:h1 h:h2 e:",
    );
}

#[test]
fn a_loop_that_is_entered_again_counts_from_the_start() {
    check(
        "
        a* -> o
        o* -> i
        i* -> i p
        p -> o e
        e ->",
        "a o i i i p o i i p e",
        "o:o0 i:i0,o0 i:i1,o0 i:i2,o0 o:o1 i:i0,o1 i:i1,o1",
    );
}

#[test]
fn an_inner_loop_alone_tells_the_outer_one_if_it_must() {
    // From i to i: once more around the inner loop, or out, around the outer one, and in again.
    check(
        "
        a* -> o
        o -> i
        i* -> i p
        p -> o e
        e ->",
        "a o i i",
        "i:i0,o0 i:i?,o?",
    );
}

#[test]
fn both_sides_of_an_if_count() {
    check(
        "
        a* -> h
        h -> t f
        t* -> p
        f* -> p
        p -> h e
        e ->",
        "a h t p h f p h f",
        "t:h0 f:h1 f:h2",
    );
}

#[test]
fn an_access_on_one_side_of_an_if_loses_count() {
    check(
        "
        a* -> h
        h -> t p
        t* -> p
        p -> h e
        e ->",
        "a h t p h p h t",
        "t:h? t:h?",
    );
}

#[test]
fn continue_counts() {
    check(
        "
        a* -> h
        h* -> h b
        b* -> h e
        e ->",
        "a h h b h b e",
        "h:h0 h:h1 b:h1 h:h2 b:h2",
    );
}

#[test]
fn while_with_the_access_in_its_condition() {
    check(
        "
        a* -> h
        h* -> b e
        b -> h
        e* ->",
        "a h b h b h e",
        "h:h0 h:h1 h:h2 e:",
    );
}

#[test]
fn what_was_unknown_is_known_when_the_loop_is_entered_again() {
    check(
        "
        a* -> o
        o* -> i
        i -> t p
        t* -> p
        p -> i q
        q* -> o e
        e ->",
        "a o i t p i p q o i t p q",
        "o:o0 t:i?,o0 q:o0 o:o1 t:i?,o1 q:o1",
    );
}

#[test]
fn the_first_iteration_is_known_if_nothing_can_go_round_before() {
    check(
        "
        a* -> h
        h* -> t p
        t* -> p
        p -> h e
        e ->",
        "a h p h t p h",
        "h:h0 h:h1 t:h1 h:h2",
    );
}

#[test]
fn a_gap_is_unknown_until_the_loop_is_entered_again() {
    check(
        "
        a* -> o
        o* -> i
        i* -> i p
        p -> o e
        e ->",
        "a o i gap i i p o i",
        "o:o0 i:i0,o0 i:i?,o? i:i?,o? o:o? i:i0,o?",
    );
}

#[test]
fn each_activation_counts_for_itself() {
    check(
        "
        a* -> h
        h* -> h e
        e ->",
        "a h h a h h h leave h",
        "h:h0 h:h1 h:h0 h:h1 h:h2 h:h2",
    );
}

#[test]
fn a_call_that_is_no_callback_is_told_but_not_believed() {
    check(
        "
        a* -> h
        h* -> l p
        l~ -> p
        p -> h e
        e ->",
        "a h l p h p h l",
        "h:h0 l:h0 h:h1 h:h2 l:h2",
    );
}

#[test]
fn an_impossible_step_ends_all_knowledge_of_the_activation() {
    check(
        "
        a* -> h
        h* -> h e
        e* ->",
        "a e h h leave a h",
        "e:unknown h:unknown h:unknown h:h0",
    );
}

#[test]
fn an_irreducible_loop_is_unknown() {
    check(
        "
        a* -> b c
        b* -> c e
        c* -> b
        e ->",
        "a b c b",
        "b:b? c:b? b:b?",
    );
}

#[test]
fn nothing_is_known_outside_of_all_functions() {
    let mut tracker = Tracker::new(Functions::default());
    assert_eq!(tracker.site(THREAD, Pc(1)), Nest::UNKNOWN);
    tracker.enter(THREAD, Pc(0));
    assert_eq!(tracker.site(THREAD, Pc(0)), Nest::UNKNOWN);
    tracker.leave(THREAD);
    tracker.leave(THREAD);
}
