//! The end, when the runtime itself is wrong.

use core::fmt::{self, Write};

use crate::sys;

/// Says what is wrong, and ends the process without running anything of the target.
macro_rules! die {
    ($($arg:tt)*) => { $crate::die::die(format_args!($($arg)*)) };
}

/// The status with which a target ends that the runtime ended.
pub(crate) const STATUS: i32 = 99;

/// See [`die!`].
pub(crate) fn die(text: fmt::Arguments<'_>) -> ! {
    let mut line = Line { bytes: [0; 512], len: 0 };
    let _ = writeln!(line, "raddle: {text}");
    sys::complain(&line.bytes[..line.len]);
    crate::shared::fail(raddle_trace::control::Ending::Internal, &line.bytes[..line.len]);
    sys::exit_group(STATUS)
}

/// Text on the stack, cut where it is full.
pub(crate) struct Line {
    pub(crate) bytes: [u8; 512],
    pub(crate) len: usize,
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
