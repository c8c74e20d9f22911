//! Any bytes are a trace, or an error that says why not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_trace::file::Trace;
use raddle_trace::std_text;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(trace) = Trace::from_bytes(bytes.to_vec(), "fuzz".as_ref()) {
        let _ = trace.stats();
        let _ = std_text::export(&trace, &mut std::io::sink());
    }
});
