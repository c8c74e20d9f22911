//! Any file is fit to be a target, or an error says why not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_code::program;

fuzz_target!(|bytes: &[u8]| {
    let path = raddle_fuzz::file(bytes);
    let _ = program::check(&path);
    let _ = program::build_id(&path);
});
