//! Formatted output to memory: the text is written. How long it gets is known after it was
//! formatted once, to nowhere. What the arguments point to is not recorded.

use core::ffi::c_void;

use libc::{c_char, c_int, size_t};

use super::fortified;
use crate::export::{export, export_variadic};
use crate::hook;
use crate::real::real;

export_variadic! {
    sprintf(2, "rdx") => print;
    snprintf(3, "rcx") => print_max;
    __sprintf_chk(4, "r8") => print_checked;
    __snprintf_chk(5, "r9") => print_max_checked;
}

export! {
    vsprintf => print;
    vsnprintf => print_max;
    __vsprintf_chk => print_checked;
    __vsnprintf_chk => print_max_checked;
}

type Text = *const c_char;
type TextMut = *mut c_char;

/// A `va_list`: where the next arguments are. Whoever reads them moves it on.
type Arguments = *mut ArgumentsAt;

#[repr(C)]
#[derive(Clone, Copy)]
struct ArgumentsAt {
    gp_offset: u32,
    fp_offset: u32,
    overflow: *mut c_void,
    saved: *mut c_void,
}

/// Records that a text of at most `room` bytes is about to be formatted.
fn writes(into: TextMut, room: usize, format: Text, arguments: Arguments, pc: u64) {
    if room == 0 || !hook::watches() {
        return;
    }
    // SAFETY: the list of our caller.
    let mut copy = unsafe { *arguments };
    let nowhere = core::ptr::null_mut();
    let n = real!(vsnprintf(nowhere => TextMut, 0 => size_t, format => Text, &raw mut copy => Arguments) -> c_int);
    if let Ok(n) = usize::try_from(n) {
        hook::range(into as u64, (n + 1).min(room) as u64, true, pc);
    }
}

extern "C" fn print(into: TextMut, format: Text, arguments: Arguments) -> c_int {
    writes(into, usize::MAX, format, arguments, hook::caller());
    real!(vsprintf(into => TextMut, format => Text, arguments => Arguments) -> c_int)
}

extern "C" fn print_max(into: TextMut, room: size_t, format: Text, arguments: Arguments) -> c_int {
    writes(into, room, format, arguments, hook::caller());
    real!(vsnprintf(into => TextMut, room => size_t, format => Text, arguments => Arguments) -> c_int)
}

extern "C" fn print_checked(
    into: TextMut,
    flag: c_int,
    size: size_t,
    format: Text,
    arguments: Arguments,
) -> c_int {
    writes(into, size, format, arguments, hook::caller());
    real!(__vsprintf_chk(into => TextMut, flag => c_int, size => size_t, format => Text, arguments => Arguments) -> c_int)
}

extern "C" fn print_max_checked(
    into: TextMut,
    room: size_t,
    flag: c_int,
    size: size_t,
    format: Text,
    arguments: Arguments,
) -> c_int {
    fortified::check(room, size);
    writes(into, room, format, arguments, hook::caller());
    real!(__vsnprintf_chk(into => TextMut, room => size_t, flag => c_int, size => size_t, format => Text, arguments => Arguments) -> c_int)
}
