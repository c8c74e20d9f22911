//! Any bytes are a clip, or an error that says why not. What was taken is written as it is.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use raddle_trace::clip::Clip;

fuzz_target!(|bytes: &[u8]| {
    let path = Path::new("fuzz.clip");
    if let Ok(clip) = Clip::parse(bytes, path) {
        let again = Clip::parse(&clip.to_json(), path).expect("what was written");
        assert_eq!(clip, again);
    }
});
