//! Any bytes are STD text, or an error that names the line. What was imported can be read and
//! exported.
#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_trace::file::{Trace, Writer};
use raddle_trace::std_text;

fuzz_target!(|bytes: &[u8]| {
    let path = raddle_fuzz::path();
    let writer = Writer::create(&path).expect("a writer");
    if std_text::import(bytes, writer).is_ok() {
        let trace = Trace::open(&path).expect("what was imported");
        std_text::export(&trace, &mut std::io::sink()).expect("what was imported");
    }
});
