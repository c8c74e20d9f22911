//! Any file is a module with machine code: functions, control flow, where exceptions land
//! (`.eh_frame` and the tables of `.gcc_except_table`), loops; or a complaint.
#![no_main]

use libfuzzer_sys::fuzz_target;
use raddle_code::elf::Files;
use raddle_code::functions::Functions;
use raddle_code::image::Image as _;
use raddle_code::iterations::Tracker;
use raddle_code::module::Code;
use raddle_trace::id::{Pc, ThreadId};

/// Functions that are looked at.
const N_FUNCTIONS: usize = 32;

fuzz_target!(|bytes: &[u8]| {
    let Ok(code) = Code::load(&raddle_fuzz::module(bytes), &Files::default()) else { return };
    let starts: Vec<u64> =
        code.symbols().iter().map(|symbol| symbol.start).take(N_FUNCTIONS).collect();
    let functions = Functions::new(vec![Box::new(code)]);
    for function in starts.iter().filter_map(|&start| functions.at(start)) {
        let function = functions.get(function);
        for (block, _) in function.cfg.blocks() {
            let _ = function.loops.around(block).count();
        }
    }
    let mut tracker = Tracker::new(functions);
    for start in starts {
        let thread = ThreadId(0);
        tracker.enter(thread, Pc(start));
        for offset in 0..16 {
            let nest = tracker.site(thread, Pc(start.wrapping_add(offset)));
            let _ = tracker.loop_iterations(nest);
        }
        tracker.leave(thread);
    }
});
