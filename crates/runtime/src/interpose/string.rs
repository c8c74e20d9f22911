//! Memory and string functions: each reads and writes ranges.
//!
//! They are recorded before they are performed, by what they will touch. What a search reads is
//! known only afterward, so it is recorded then.

use core::ffi::{c_char, c_void};

use libc::{c_int, size_t};

use crate::real::real;
use crate::{hook, modules, tls};

/// Like [`crate::export::export!`], with a separate word for the return address.
macro_rules! export_string {
    ($($name:ident => $inner:ident;)*) => {$(
        /// See the inner function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) extern "C" fn $name() {
            core::arch::naked_asm!(
                "mov r10, qword ptr [rip + raddle_tls@GOTTPOFF]",
                "mov r11, qword ptr [rsp]",
                "mov qword ptr fs:[r10 + {caller}], r11",
                "jmp {inner}",
                caller = const $crate::tls::STRING_CALLER,
                inner = sym $inner,
            )
        }
    )*};
}
pub(super) use export_string;

export_string! {
    memcpy => copy;
    memmove => move_inner;
    memset => set;
    memcmp => compare;
    bcmp => compare;
    memchr => find_byte;
    bzero => zero;
    __tsan_memcpy => copy;
    __tsan_memmove => move_inner;
    __tsan_memset => set;
    strlen => length;
    strnlen => length_max;
    strcpy => string_copy;
    stpcpy => string_copy_end;
    strncpy => string_copy_max;
    strcat => string_append;
    strncat => string_append_max;
    strcmp => string_compare;
    strncmp => string_compare_max;
    strcasecmp => string_compare_case;
    strchr => string_find;
    strrchr => string_find_last;
    strstr => string_find_string;
    strdup => string_duplicate;
    strndup => string_duplicate_max;
}

pub(super) type Bytes = *const c_char;
pub(super) type BytesMut = *mut c_char;

/// Where the program called the current string function.
pub(super) fn pc() -> u64 {
    tls::get(tls::STRING_CALLER)
}

pub(super) fn reads(at: *const c_char, bytes: usize, pc: u64) {
    hook::range(at as u64, bytes as u64, false, pc);
}

pub(super) fn writes(at: *const c_char, bytes: usize, pc: u64) {
    hook::range(at as u64, bytes as u64, true, pc);
}

pub(super) fn real_length(text: Bytes) -> usize {
    real!(strlen(text => Bytes) -> size_t)
}

pub(super) fn real_length_max(text: Bytes, max: usize) -> usize {
    real!(strnlen(text => Bytes, max => size_t) -> size_t)
}

extern "C" fn copy(to: BytesMut, from: Bytes, bytes: size_t) -> *mut c_void {
    let pc = pc();
    if !modules::in_runtime(pc) {
        reads(from, bytes, pc);
        writes(to, bytes, pc);
    }
    real!(memcpy(to => BytesMut, from => Bytes, bytes => size_t) -> *mut c_void)
}

extern "C" fn move_inner(to: BytesMut, from: Bytes, bytes: size_t) -> *mut c_void {
    let pc = pc();
    if !modules::in_runtime(pc) {
        reads(from, bytes, pc);
        writes(to, bytes, pc);
    }
    real!(memmove(to => BytesMut, from => Bytes, bytes => size_t) -> *mut c_void)
}

extern "C" fn set(to: BytesMut, byte: c_int, bytes: size_t) -> *mut c_void {
    let pc = pc();
    if !modules::in_runtime(pc) {
        writes(to, bytes, pc);
    }
    real!(memset(to => BytesMut, byte => c_int, bytes => size_t) -> *mut c_void)
}

extern "C" fn zero(to: BytesMut, bytes: size_t) {
    writes(to, bytes, pc());
    real!(memset(to => BytesMut, 0 => c_int, bytes => size_t) -> *mut c_void);
}

extern "C" fn compare(a: Bytes, b: Bytes, bytes: size_t) -> c_int {
    let pc = pc();
    if !modules::in_runtime(pc) {
        reads(a, bytes, pc);
        reads(b, bytes, pc);
    }
    real!(memcmp(a => Bytes, b => Bytes, bytes => size_t) -> c_int)
}

extern "C" fn find_byte(text: Bytes, byte: c_int, bytes: size_t) -> *mut c_void {
    let pc = pc();
    let found = real!(memchr(text => Bytes, byte => c_int, bytes => size_t) -> *mut c_void);
    let read = if found.is_null() { bytes } else { found as usize - text as usize + 1 };
    reads(text, read, pc);
    // Again: another thread may have gone first.
    real!(memchr(text => Bytes, byte => c_int, bytes => size_t) -> *mut c_void)
}

extern "C" fn length(text: Bytes) -> size_t {
    let pc = pc();
    if !modules::in_runtime(pc) {
        reads(text, real_length(text) + 1, pc);
    }
    real_length(text)
}

extern "C" fn length_max(text: Bytes, max: size_t) -> size_t {
    let pc = pc();
    reads(text, (real_length_max(text, max) + 1).min(max), pc);
    real_length_max(text, max)
}

extern "C" fn string_copy(to: BytesMut, from: Bytes) -> BytesMut {
    let pc = pc();
    let bytes = real_length(from) + 1;
    reads(from, bytes, pc);
    writes(to, bytes, pc);
    real!(strcpy(to => BytesMut, from => Bytes) -> BytesMut)
}

extern "C" fn string_copy_end(to: BytesMut, from: Bytes) -> BytesMut {
    let pc = pc();
    let bytes = real_length(from) + 1;
    reads(from, bytes, pc);
    writes(to, bytes, pc);
    real!(stpcpy(to => BytesMut, from => Bytes) -> BytesMut)
}

extern "C" fn string_copy_max(to: BytesMut, from: Bytes, max: size_t) -> BytesMut {
    let pc = pc();
    reads(from, (real_length_max(from, max) + 1).min(max), pc);
    writes(to, max, pc);
    real!(strncpy(to => BytesMut, from => Bytes, max => size_t) -> BytesMut)
}

extern "C" fn string_append(to: BytesMut, from: Bytes) -> BytesMut {
    let pc = pc();
    let (head, tail) = (real_length(to), real_length(from));
    reads(from, tail + 1, pc);
    reads(to, head + 1, pc);
    // SAFETY: the end of the program's own string.
    writes(unsafe { to.add(head) }, tail + 1, pc);
    real!(strcat(to => BytesMut, from => Bytes) -> BytesMut)
}

extern "C" fn string_append_max(to: BytesMut, from: Bytes, max: size_t) -> BytesMut {
    let pc = pc();
    let (head, tail) = (real_length(to), real_length_max(from, max));
    reads(from, (tail + 1).min(max), pc);
    reads(to, head + 1, pc);
    // SAFETY: the end of the program's own string.
    writes(unsafe { to.add(head) }, tail + 1, pc);
    real!(strncat(to => BytesMut, from => Bytes, max => size_t) -> BytesMut)
}

fn compared(a: Bytes, b: Bytes, max: usize, pc: u64) {
    let bytes = (real_length_max(a, max).min(real_length_max(b, max)) + 1).min(max);
    reads(a, bytes, pc);
    reads(b, bytes, pc);
}

extern "C" fn string_compare(a: Bytes, b: Bytes) -> c_int {
    compared(a, b, usize::MAX, pc());
    real!(strcmp(a => Bytes, b => Bytes) -> c_int)
}

extern "C" fn string_compare_max(a: Bytes, b: Bytes, max: size_t) -> c_int {
    compared(a, b, max, pc());
    real!(strncmp(a => Bytes, b => Bytes, max => size_t) -> c_int)
}

extern "C" fn string_compare_case(a: Bytes, b: Bytes) -> c_int {
    compared(a, b, usize::MAX, pc());
    real!(strcasecmp(a => Bytes, b => Bytes) -> c_int)
}

extern "C" fn string_find(text: Bytes, byte: c_int) -> BytesMut {
    let pc = pc();
    let found = real!(strchr(text => Bytes, byte => c_int) -> BytesMut);
    let read =
        if found.is_null() { real_length(text) + 1 } else { found as usize - text as usize + 1 };
    reads(text, read, pc);
    real!(strchr(text => Bytes, byte => c_int) -> BytesMut)
}

extern "C" fn string_find_last(text: Bytes, byte: c_int) -> BytesMut {
    reads(text, real_length(text) + 1, pc());
    real!(strrchr(text => Bytes, byte => c_int) -> BytesMut)
}

extern "C" fn string_find_string(text: Bytes, wanted: Bytes) -> BytesMut {
    let pc = pc();
    reads(text, real_length(text) + 1, pc);
    reads(wanted, real_length(wanted) + 1, pc);
    real!(strstr(text => Bytes, wanted => Bytes) -> BytesMut)
}

extern "C" fn string_duplicate(text: Bytes) -> BytesMut {
    reads(text, real_length(text) + 1, pc());
    real!(strdup(text => Bytes) -> BytesMut)
}

extern "C" fn string_duplicate_max(text: Bytes, max: size_t) -> BytesMut {
    reads(text, (real_length_max(text, max) + 1).min(max), pc());
    real!(strndup(text => Bytes, max => size_t) -> BytesMut)
}
