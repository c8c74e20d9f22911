//! Any text is a list of patterns, or an error that names the line. What was read is what
//! prediction takes for granted: one or two accesses by each of two threads.
#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_analysis::pattern;

fuzz_target!(|text: &str| {
    for pattern in pattern::parse(text).unwrap_or_default() {
        for thread in [1, 2] {
            assert!((1..=2).contains(&pattern.of_thread(thread).len()), "{pattern:?}");
        }
    }
});
