//! Whatever a trace says, also one that no program could have made, it can be analysed: for
//! what is shared, for what it implies, and into schedules that show it. The bytes are a trace
//! file or STD text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_analysis::observed::Observed;
use raddle_analysis::pattern::built_in;
use raddle_analysis::predict::predict;
use raddle_analysis::scan::Scan;
use raddle_analysis::sharing::Sharing;
use raddle_analysis::weave::{Hold, schedule, weave};
use raddle_trace::event::Event;
use raddle_trace::file::{Trace, Writer};
use raddle_trace::std_text;

/// Anomalies that get schedules.
const N_WOVEN: usize = 8;

fuzz_target!(|bytes: &[u8]| {
    let Some(trace) = read(bytes) else { return };
    let events: Result<Vec<Event>, _> = trace.events().collect();
    let Ok(events) = events else { return };
    let mut sharing = Sharing::default();
    events.iter().for_each(|event| sharing.push(event));
    let mut scan = Scan::new(&sharing);
    let mut observed = Observed::default();
    for event in &events {
        scan.push(event);
        observed.push(event, &sharing);
    }
    let model = scan.finish();
    for anomaly in predict(&model, &built_in()).iter().take(N_WOVEN) {
        for &hold in &Hold::ALL {
            if let Ok(stretches) = weave(&model, &anomaly.ways[0], hold) {
                let _ = schedule(&model, &stretches, trace.run());
            }
        }
    }
});

fn read(bytes: &[u8]) -> Option<Trace> {
    if let Ok(trace) = Trace::from_bytes(bytes.to_vec(), "fuzz".as_ref()) {
        return Some(trace);
    }
    let path = raddle_fuzz::path();
    let writer = Writer::create(&path).expect("a writer");
    std_text::import(bytes, writer).ok()?;
    Some(Trace::open(&path).expect("what was imported"))
}
