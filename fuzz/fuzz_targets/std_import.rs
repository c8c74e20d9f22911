//! Any bytes are STD text, or an error that says which line is not. What was taken can be
//! read and exported.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use raddle_trace::file::{Trace, Writer};
use raddle_trace::std_text;
use tempfile::TempDir;

static DIRECTORY: LazyLock<TempDir> =
    LazyLock::new(|| tempfile::tempdir().expect("a temporary directory"));

fuzz_target!(|bytes: &[u8]| {
    let path = DIRECTORY.path().join("t");
    let writer = Writer::create(&path).expect("a writer");
    if std_text::import(bytes, writer).is_ok() {
        let trace = Trace::open(&path).expect("what was imported");
        std_text::export(&trace, &mut std::io::sink()).expect("what was imported");
    }
});
