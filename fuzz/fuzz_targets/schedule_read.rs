//! Any text is a schedule, a step in each line, or an error. What was read prints and reads back
//! as the same step.
#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_trace::schedule::Step;

fuzz_target!(|text: &str| {
    for step in text.lines().filter_map(|line| line.parse::<Step>().ok()) {
        assert_eq!(step.to_string().parse(), Ok(step));
    }
});
