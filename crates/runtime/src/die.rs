//! Ending the target from the runtime: the target did what no correct program does, or the
//! runtime itself is wrong.

use core::fmt::{self, Write};
use core::sync::atomic::Ordering;

use raddle_trace::control::Ending;

use crate::{shared, sys};

/// Prints an internal error and ends the process without running any code of the target.
macro_rules! die {
    ($($arg:tt)*) => { $crate::die::die(format_args!($($arg)*)) };
}

/// Exit status when the runtime ends the target.
const STATUS: i32 = 99;

/// Ends the run because of what `thread` did at `pc`; `addr` is the memory involved.
#[cold]
pub(crate) fn stop(ending: Ending, thread: u32, pc: u64, addr: u64) -> ! {
    let control = shared::control();
    control.thread.store(thread, Ordering::Relaxed);
    control.pc.store(pc, Ordering::Relaxed);
    control.addr.store(addr, Ordering::Relaxed);
    shared::fail(ending, b"");
    sys::exit_group(STATUS)
}

/// The function behind [`die!`].
pub(crate) fn die(text: fmt::Arguments<'_>) -> ! {
    let mut line = Line { bytes: [0; 512], len: 0 };
    let _ = writeln!(line, "raddle: {text}");
    sys::complain(&line.bytes[..line.len]);
    shared::fail(Ending::Internal, &line.bytes[..line.len]);
    sys::exit_group(STATUS)
}

/// Text on the stack, truncated to fit.
struct Line {
    bytes: [u8; 512],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let n = text.len().min(self.bytes.len() - self.len);
        self.bytes[self.len..self.len + n].copy_from_slice(&text.as_bytes()[..n]);
        self.len += n;
        Ok(())
    }
}

#[cfg(all(feature = "standalone", not(test)))]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    die!("internal bug: {info}")
}
