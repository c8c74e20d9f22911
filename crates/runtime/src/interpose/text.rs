//! More string functions, narrow and wide: what each reads and writes is known before it runs, or
//! is found by looking at the same text.

use libc::{c_char, c_int, size_t, wchar_t};

use super::string::{real_length, real_length_max};
use crate::export::export_noted;
use crate::hook;
use crate::real::{address, real};

export_noted! {
    mempcpy => copy_end;
    __mempcpy => copy_end;
    explicit_bzero => zero;
    stpncpy => copy_max_end;
    memrchr => find_last_byte;
    rawmemchr => find_sure_byte;
    memmem => find_bytes;
    strncasecmp => compare_case_max;
    strcasestr => find_case;
    strchrnul => find_or_end;
    strspn => span;
    strcspn => span_without;
    strpbrk => find_any;
    strtok_r => token;
    __strtok_r => token;
    strtok => static_token;
    wcslen => wide_length;
    wcsnlen => wide_length_max;
    wcscpy => wide_copy;
    wcsncpy => wide_copy_max;
    wcscat => wide_append;
    wcscmp => wide_compare;
    wcsncmp => wide_compare_max;
    wcschr => wide_find;
    wcsrchr => wide_find_last;
    wmemcpy => wide_copy_all;
    wmemmove => wide_move;
    wmemset => wide_set;
    wmemcmp => wide_compare_all;
    wmemchr => wide_find_in;
}

type Text = *const c_char;
type Wide = *const wchar_t;
const WIDE: usize = size_of::<wchar_t>();

fn reads<T>(at: *const T, bytes: usize, pc: u64) {
    hook::range(at as u64, bytes as u64, false, pc);
}

fn writes<T>(at: *const T, bytes: usize, pc: u64) {
    hook::range(at as u64, bytes as u64, true, pc);
}

fn reads_text(text: Text, pc: u64) {
    reads(text, real_length(text) + 1, pc);
}

/// What a search in `text` that stops at `found` has read, or in all `bytes` if it found nothing.
fn searched(text: Text, found: Text, bytes: usize, pc: u64) {
    let read = if found.is_null() { bytes } else { found as usize - text as usize + 1 };
    reads(text, read, pc);
}

extern "C" fn copy_end(to: Text, from: Text, bytes: size_t) -> usize {
    let pc = hook::caller();
    reads(from, bytes, pc);
    writes(to, bytes, pc);
    address!(mempcpy)
}

extern "C" fn zero(to: Text, bytes: size_t) -> usize {
    writes(to, bytes, hook::caller());
    address!(explicit_bzero)
}

extern "C" fn copy_max_end(to: Text, from: Text, max: size_t) -> usize {
    let pc = hook::caller();
    reads(from, (real_length_max(from, max) + 1).min(max), pc);
    writes(to, max, pc);
    address!(stpncpy)
}

extern "C" fn find_last_byte(text: Text, _: c_int, bytes: size_t) -> usize {
    reads(text, bytes, hook::caller());
    address!(memrchr)
}

extern "C" fn find_sure_byte(text: Text, byte: c_int) -> usize {
    let pc = hook::caller();
    if hook::watches() {
        let found = real!(rawmemchr(text => Text, byte => c_int) -> Text);
        searched(text, found, 0, pc);
    }
    address!(rawmemchr)
}

extern "C" fn find_bytes(text: Text, bytes: size_t, wanted: Text, n_wanted: size_t) -> usize {
    let pc = hook::caller();
    reads(text, bytes, pc);
    reads(wanted, n_wanted, pc);
    address!(memmem)
}

extern "C" fn compare_case_max(a: Text, b: Text, max: size_t) -> usize {
    let pc = hook::caller();
    let bytes = (real_length_max(a, max).min(real_length_max(b, max)) + 1).min(max);
    reads(a, bytes, pc);
    reads(b, bytes, pc);
    address!(strncasecmp)
}

extern "C" fn find_case(text: Text, wanted: Text) -> usize {
    let pc = hook::caller();
    reads_text(text, pc);
    reads_text(wanted, pc);
    address!(strcasestr)
}

extern "C" fn find_or_end(text: Text, byte: c_int) -> usize {
    let pc = hook::caller();
    if hook::watches() {
        let found = real!(strchrnul(text => Text, byte => c_int) -> Text);
        searched(text, found, 0, pc);
    }
    address!(strchrnul)
}

fn real_span(text: Text, of: Text) -> usize {
    real!(strspn(text => Text, of => Text) -> size_t)
}

fn real_span_without(text: Text, of: Text) -> usize {
    real!(strcspn(text => Text, of => Text) -> size_t)
}

extern "C" fn span(text: Text, of: Text) -> usize {
    let pc = hook::caller();
    reads(text, real_span(text, of) + 1, pc);
    reads_text(of, pc);
    address!(strspn)
}

extern "C" fn span_without(text: Text, of: Text) -> usize {
    let pc = hook::caller();
    reads(text, real_span_without(text, of) + 1, pc);
    reads_text(of, pc);
    address!(strcspn)
}

extern "C" fn find_any(text: Text, of: Text) -> usize {
    let pc = hook::caller();
    reads(text, real_span_without(text, of) + 1, pc);
    reads_text(of, pc);
    address!(strpbrk)
}

/// The next token of `text` ends at a separator, which is overwritten.
fn takes_token(text: Text, separators: Text, pc: u64) {
    if text.is_null() {
        return;
    }
    let before = real_span(text, separators);
    // SAFETY: within the program's text.
    let start = unsafe { text.add(before) };
    let length = real_span_without(start, separators);
    reads(text, before + length + 1, pc);
    reads_text(separators, pc);
    // SAFETY: within the program's text, which ends there at the latest.
    let end = unsafe { start.add(length) };
    // SAFETY: as above.
    if length > 0 && unsafe { *end } != 0 {
        writes(end, 1, pc);
    }
}

extern "C" fn token(text: Text, separators: Text, rest: *mut Text) -> usize {
    let pc = hook::caller();
    if hook::watches() {
        if text.is_null() {
            reads(rest, size_of::<Text>(), pc);
        }
        // SAFETY: the contract of `strtok_r`: the rest is from an earlier call.
        takes_token(if text.is_null() { unsafe { *rest } } else { text }, separators, pc);
        writes(rest, size_of::<Text>(), pc);
    }
    address!(strtok_r)
}

/// Stands for libc's own rest of the text, which is shared by all threads.
static REST: u64 = 0;

extern "C" fn static_token(text: Text, separators: Text) -> usize {
    let pc = hook::caller();
    if hook::watches() {
        if text.is_null() {
            reads(&raw const REST, size_of::<Text>(), pc);
        }
        takes_token(text, separators, pc);
        writes(&raw const REST, size_of::<Text>(), pc);
    }
    address!(strtok)
}

fn real_wide_length(text: Wide) -> usize {
    real!(wcslen(text => Wide) -> size_t)
}

fn real_wide_length_max(text: Wide, max: usize) -> usize {
    real!(wcsnlen(text => Wide, max => size_t) -> size_t)
}

fn reads_wide(text: Wide, n: usize, pc: u64) {
    reads(text, n * WIDE, pc);
}

fn writes_wide(text: Wide, n: usize, pc: u64) {
    writes(text, n * WIDE, pc);
}

extern "C" fn wide_length(text: Wide) -> usize {
    reads_wide(text, real_wide_length(text) + 1, hook::caller());
    address!(wcslen)
}

extern "C" fn wide_length_max(text: Wide, max: size_t) -> usize {
    reads_wide(text, (real_wide_length_max(text, max) + 1).min(max), hook::caller());
    address!(wcsnlen)
}

extern "C" fn wide_copy(to: Wide, from: Wide) -> usize {
    let pc = hook::caller();
    let n = real_wide_length(from) + 1;
    reads_wide(from, n, pc);
    writes_wide(to, n, pc);
    address!(wcscpy)
}

extern "C" fn wide_copy_max(to: Wide, from: Wide, max: size_t) -> usize {
    let pc = hook::caller();
    reads_wide(from, (real_wide_length_max(from, max) + 1).min(max), pc);
    writes_wide(to, max, pc);
    address!(wcsncpy)
}

extern "C" fn wide_append(to: Wide, from: Wide) -> usize {
    let pc = hook::caller();
    let (head, tail) = (real_wide_length(to), real_wide_length(from));
    reads_wide(from, tail + 1, pc);
    reads_wide(to, head + 1, pc);
    // SAFETY: the end of the program's own string.
    writes_wide(unsafe { to.add(head) }, tail + 1, pc);
    address!(wcscat)
}

fn compared(a: Wide, b: Wide, max: usize, pc: u64) {
    let n = (real_wide_length_max(a, max).min(real_wide_length_max(b, max)) + 1).min(max);
    reads_wide(a, n, pc);
    reads_wide(b, n, pc);
}

extern "C" fn wide_compare(a: Wide, b: Wide) -> usize {
    compared(a, b, usize::MAX / WIDE, hook::caller());
    address!(wcscmp)
}

extern "C" fn wide_compare_max(a: Wide, b: Wide, max: size_t) -> usize {
    compared(a, b, max, hook::caller());
    address!(wcsncmp)
}

extern "C" fn wide_find(text: Wide, _: wchar_t) -> usize {
    reads_wide(text, real_wide_length(text) + 1, hook::caller());
    address!(wcschr)
}

extern "C" fn wide_find_last(text: Wide, _: wchar_t) -> usize {
    reads_wide(text, real_wide_length(text) + 1, hook::caller());
    address!(wcsrchr)
}

extern "C" fn wide_copy_all(to: Wide, from: Wide, n: size_t) -> usize {
    let pc = hook::caller();
    reads_wide(from, n, pc);
    writes_wide(to, n, pc);
    address!(wmemcpy)
}

extern "C" fn wide_move(to: Wide, from: Wide, n: size_t) -> usize {
    let pc = hook::caller();
    reads_wide(from, n, pc);
    writes_wide(to, n, pc);
    address!(wmemmove)
}

extern "C" fn wide_set(to: Wide, _: wchar_t, n: size_t) -> usize {
    writes_wide(to, n, hook::caller());
    address!(wmemset)
}

extern "C" fn wide_compare_all(a: Wide, b: Wide, n: size_t) -> usize {
    let pc = hook::caller();
    reads_wide(a, n, pc);
    reads_wide(b, n, pc);
    address!(wmemcmp)
}

extern "C" fn wide_find_in(text: Wide, _: wchar_t, n: size_t) -> usize {
    reads_wide(text, n, hook::caller());
    address!(wmemchr)
}
