//! The heap: who allocated what, and freeing as a write.
//!
//! libc's allocator stays in use: its checks for a corrupted heap are part of how programs fail.
//! But under control it gets blocks back late ([`freed`]), and `realloc` moves what it cannot
//! keep in place, so that the old block can be watched. Only a call from the program itself is a
//! scheduling point; libc allocates under locks of its own.

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};

use libc::{c_int, size_t};
use raddle_trace::allow::Judgement;
use raddle_trace::control::Ending;
use raddle_trace::record::Kind;

use super::misuse;
use crate::export::export;
use crate::real::Real;
use crate::sched::thread::{NEVER, Wait};
use crate::{allow, die, freed, hook, modules, sched, shared, tls};

export! { unsafe HEAP:
    malloc => malloc_inner;
    calloc => calloc_inner;
    realloc => realloc_inner;
    reallocarray => reallocarray_inner;
    free => free_inner;
    cfree => free_inner;
    memalign => memalign_inner;
    aligned_alloc => memalign_inner;
    posix_memalign => posix_memalign_inner;
    valloc => valloc_inner;
}

/// Looking up libc's allocator may allocate. Such requests are served from here and never freed.
static ARENA: [AtomicUsize; ARENA_WORDS] = [const { AtomicUsize::new(0) }; ARENA_WORDS];
const ARENA_WORDS: usize = 4096;
static ARENA_USED: AtomicUsize = AtomicUsize::new(0);
static LOOKING_UP: AtomicUsize = AtomicUsize::new(0);

fn from_arena(bytes: usize) -> *mut c_void {
    let words = bytes.div_ceil(16) * 2;
    let at = ARENA_USED.fetch_add(words, Ordering::Relaxed);
    if at + words > ARENA_WORDS {
        die!("the loader wants more memory than we have before the start");
    }
    ARENA[at].as_ptr().cast()
}

fn is_in_arena(block: *const c_void) -> bool {
    let start = ARENA.as_ptr() as usize;
    (start..start + size_of_val(&ARENA)).contains(&(block as usize))
}

/// libc's allocator.
static REALS: [Real; 8] = [
    Real::new(c"malloc", None),
    Real::new(c"calloc", None),
    Real::new(c"realloc", None),
    Real::new(c"free", None),
    Real::new(c"aligned_alloc", None),
    Real::new(c"posix_memalign", None),
    Real::new(c"valloc", None),
    Real::new(c"malloc_usable_size", None),
];
const MALLOC: usize = 0;
const CALLOC: usize = 1;
const REALLOC: usize = 2;
const FREE: usize = 3;
const ALIGNED_ALLOC: usize = 4;
const POSIX_MEMALIGN: usize = 5;
const VALLOC: usize = 6;
const USABLE_SIZE: usize = 7;

/// The address of libc's function, or none while it is being looked up. All are looked up at the
/// first call: `dlsym` itself allocates and frees in the middle of its work, and a lookup at that
/// point would break it.
fn address(which: usize) -> Option<usize> {
    if let Some(address) = REALS[which].resolved() {
        return Some(address);
    }
    if LOOKING_UP.swap(1, Ordering::Acquire) == 1 {
        return None;
    }
    for real in &REALS {
        real.address();
    }
    LOOKING_UP.store(0, Ordering::Release);
    REALS[which].resolved()
}

macro_rules! call {
    ($which:ident, ($($arg:expr => $type:ty),*) -> $result:ty, else $fallback:expr) => {
        match address($which) {
            Some(address) => {
                // SAFETY: the address is that of the function of this name.
                let function: unsafe extern "C" fn($($type),*) -> $result = unsafe { core::mem::transmute(address) };
                // SAFETY: what our caller passed for this same function; its contract is ours.
                unsafe { function($($arg),*) }
            }
            None => $fallback,
        }
    };
}

/// The usable size of a block, which is also what libc's free assumes.
fn usable(block: *mut c_void) -> u64 {
    call!(USABLE_SIZE, (block => *mut c_void) -> size_t, else 0) as u64
}

/// Where the request came from: the caller of `new` or `delete`, if they called us.
fn caller() -> u64 {
    match tls::get(tls::NEW_CALLER) {
        0 => hook::caller(),
        pc => {
            tls::set(tls::NEW_CALLER, 0);
            pc
        }
    }
}

fn born(block: *mut c_void, bytes: usize, pc: u64) {
    if !block.is_null() && !modules::in_runtime(pc) && hook::recording() {
        let beyond = usable(block).saturating_sub(bytes as u64).min(u16::MAX.into()) as u16;
        hook::record(Kind::Alloc, 0, block as u64, beyond, pc, &[bytes as u64]);
    }
}

/// Records that a block is about to be freed or moved; false if it was freed before, which the plan
/// allows.
fn dies(block: *mut c_void, pc: u64) -> bool {
    if block.is_null() || modules::in_runtime(pc) {
        return true;
    }
    let stops = modules::from_program(pc) && tls::get(tls::TURN) == 1;
    if let Some(me) = hook::me().filter(|_| stops) {
        hook::about_to(me, block as u64, true);
        sched::visible(me, pc, Wait::Nothing, NEVER, true);
    }
    if let Some(me) = hook::me().filter(|_| freed::is_freed(block as u64)) {
        if !allow::lifts(Judgement::DoubleFree, pc) {
            die::stop(Ending::DoubleFree, me, pc, block as u64);
        }
        return false;
    }
    if hook::recording() {
        hook::record(Kind::Free, 0, block as u64, 0, pc, &[usable(block)]);
    }
    true
}

/// Returns a block to libc.
fn release(block: *mut c_void) {
    call!(FREE, (block => *mut c_void) -> (), else ());
}

/// Ends the program's use of a block.
fn retire(block: *mut c_void, pc: u64) {
    if !block.is_null() && shared::controlled() && tls::get(tls::QUIET) == 0 {
        misuse::check_block(hook::me(), pc, block as u64, usable(block));
        freed::keep(block as u64, usable(block), |block| {
            if allow::freed_memory() {
                misuse::forget_block(block, usable(block as *mut c_void));
            }
            release(block as *mut c_void);
        });
    } else {
        release(block);
    }
}

/// From this size on, libc moves blocks by remapping pages, so they are not copied.
const MOVED_BY_LIBC: u64 = 1 << 20;

/// Whether `realloc` copies a block, so that the old one can be watched.
fn is_copied(block: *mut c_void) -> bool {
    usable(block) < MOVED_BY_LIBC || allow::freed_memory()
}

/// `realloc` under control, for a block that is to be watched.
fn resized(block: *mut c_void, bytes: size_t, pc: u64) -> *mut c_void {
    let room = usable(block);
    if (room / 2..=room).contains(&(bytes as u64)) {
        return block;
    }
    let new = call!(MALLOC, (bytes => size_t) -> *mut c_void, else core::ptr::null_mut());
    if !new.is_null() {
        let kept = (room as usize).min(bytes);
        // SAFETY: both blocks are at least that long, and a new one is apart from all others.
        unsafe { core::ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast::<u8>(), kept) };
        retire(block, pc);
    }
    new
}

/// `realloc` of a block that was freed before, which the plan allows: a copy of what it still holds.
fn resized_again(block: *mut c_void, bytes: size_t, pc: u64) -> *mut c_void {
    if bytes == 0 {
        return core::ptr::null_mut();
    }
    let new = call!(MALLOC, (bytes => size_t) -> *mut c_void, else core::ptr::null_mut());
    if !new.is_null() {
        let kept = freed::n_held(block as u64, bytes as u64) as usize;
        // SAFETY: a freed block of the heap holds that much, and a new one is apart from all others.
        unsafe { core::ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast::<u8>(), kept) };
    }
    born(new, bytes, pc);
    new
}

extern "C" fn malloc_inner(bytes: size_t) -> *mut c_void {
    let pc = caller();
    let block = call!(MALLOC, (bytes => size_t) -> *mut c_void, else from_arena(bytes));
    born(block, bytes, pc);
    block
}

extern "C" fn calloc_inner(n: size_t, bytes: size_t) -> *mut c_void {
    let pc = caller();
    let block =
        call!(CALLOC, (n => size_t, bytes => size_t) -> *mut c_void, else from_arena(n * bytes));
    born(block, n.wrapping_mul(bytes), pc);
    block
}

pub(super) extern "C" fn realloc_inner(block: *mut c_void, bytes: size_t) -> *mut c_void {
    let pc = caller();
    if is_in_arena(block) {
        let new = malloc_inner(bytes);
        // SAFETY: both are at least that long; the arena's blocks end before it does.
        unsafe {
            core::ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast::<u8>(), bytes.min(64))
        };
        return new;
    }
    if !dies(block, pc) {
        return resized_again(block, bytes, pc);
    }
    if !block.is_null() && shared::controlled() && (bytes == 0 || is_copied(block)) {
        if bytes == 0 {
            retire(block, pc);
            return core::ptr::null_mut();
        }
        let new = resized(block, bytes, pc);
        if new.is_null() {
            born(block, 0, pc);
        }
        born(new, bytes, pc);
        return new;
    }
    let new = call!(REALLOC, (block => *mut c_void, bytes => size_t) -> *mut c_void, else from_arena(bytes));
    if new.is_null() && bytes != 0 {
        // It stays in place.
        born(block, 0, pc);
    }
    born(new, bytes, pc);
    new
}

extern "C" fn reallocarray_inner(block: *mut c_void, n: size_t, bytes: size_t) -> *mut c_void {
    match n.checked_mul(bytes) {
        Some(bytes) => realloc_inner(block, bytes),
        None => {
            super::fail(libc::ENOMEM);
            core::ptr::null_mut()
        }
    }
}

extern "C" fn free_inner(block: *mut c_void) {
    let pc = caller();
    if is_in_arena(block) {
        return;
    }
    if dies(block, pc) {
        retire(block, pc);
    }
}

extern "C" fn memalign_inner(align: size_t, bytes: size_t) -> *mut c_void {
    let pc = caller();
    let block = call!(ALIGNED_ALLOC, (align => size_t, bytes => size_t) -> *mut c_void, else core::ptr::null_mut());
    born(block, bytes, pc);
    block
}

extern "C" fn posix_memalign_inner(into: *mut *mut c_void, align: size_t, bytes: size_t) -> c_int {
    let pc = caller();
    let status = call!(POSIX_MEMALIGN, (into => *mut *mut c_void, align => size_t, bytes => size_t) -> c_int, else libc::ENOMEM);
    if status == 0 {
        // SAFETY: libc has stored the block there.
        born(unsafe { *into }, bytes, pc);
    }
    status
}

extern "C" fn valloc_inner(bytes: size_t) -> *mut c_void {
    let pc = caller();
    let block = call!(VALLOC, (bytes => size_t) -> *mut c_void, else core::ptr::null_mut());
    born(block, bytes, pc);
    block
}
