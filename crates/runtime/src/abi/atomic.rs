//! Atomic operations, which the runtime performs itself.
//!
//! All are performed with sequential consistency, whatever order was requested: under control
//! only one thread runs, and weaker orders are not simulated. The requested order is recorded.
//! Under control the values are known before the operation is performed, so it is recorded first,
//! and a kill between the two loses nothing.

use core::arch::asm;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use raddle_trace::record::Kind;

use crate::export::{export, export_cancellable};
use crate::sched::thread::{NEVER, Wait};
use crate::{freed, hook, sched};

/// An integer that can be operated on atomically.
trait Cell: Copy + PartialEq {
    const BYTES: u8;
    fn low(self) -> u64;
    fn load(at: *mut Self) -> Self;
    /// Stores `new` if the value is `old`; returns the previous value.
    fn swap_if(at: *mut Self, old: Self, new: Self) -> Self;
}

macro_rules! cells {
    ($($int:ty, $atomic:ty;)*) => {$(
        impl Cell for $int {
            const BYTES: u8 = size_of::<$int>() as u8;
            fn low(self) -> u64 {
                u64::from(self)
            }
            fn load(at: *mut Self) -> Self {
                // SAFETY: the program asks for an atomic operation at this address.
                unsafe { <$atomic>::from_ptr(at) }.load(Ordering::SeqCst)
            }
            fn swap_if(at: *mut Self, old: Self, new: Self) -> Self {
                // SAFETY: the program asks for an atomic operation at this address.
                let cell = unsafe { <$atomic>::from_ptr(at) };
                match cell.compare_exchange(old, new, Ordering::SeqCst, Ordering::SeqCst) {
                    Ok(value) | Err(value) => value,
                }
            }
        }
    )*};
}
cells! { u8, AtomicU8; u16, AtomicU16; u32, AtomicU32; u64, AtomicU64; }

impl Cell for u128 {
    const BYTES: u8 = 16;
    fn low(self) -> u64 {
        self as u64
    }
    fn load(at: *mut Self) -> Self {
        // Comparing with zero and storing zero changes nothing and reads 16 bytes at once.
        Self::swap_if(at, 0, 0)
    }
    fn swap_if(at: *mut Self, old: Self, new: Self) -> Self {
        let (low, high): (u64, u64);
        // SAFETY: the program asks for an atomic operation at this address, which is aligned
        // to 16 bytes as `cmpxchg16b` demands; every x86-64 processor in use has it. rbx is
        // the compiler's own, so it is swapped in and out.
        unsafe {
            asm!(
                "xchg rsi, rbx",
                "lock cmpxchg16b [rdi]",
                "mov rbx, rsi",
                inout("rsi") new as u64 => _,
                in("rdi") at,
                in("rcx") (new >> 64) as u64,
                inout("rax") old as u64 => low,
                inout("rdx") (old >> 64) as u64 => high,
                options(nostack),
            );
        }
        Self::from(high) << 64 | Self::from(low)
    }
}

/// Applies `f` to the value; returns the value before and after.
fn apply<T: Cell>(at: *mut T, f: impl Fn(T) -> T) -> (T, T) {
    let mut value = T::load(at);
    loop {
        let new = f(value);
        let seen = T::swap_if(at, value, new);
        if seen == value {
            return (value, new);
        }
        value = seen;
    }
}

/// A step of the running thread; returns the thread if it is under control.
fn step(at: u64, write: bool, pc: u64) -> Option<u32> {
    let me = hook::me()?;
    hook::about_to(me, at, write);
    sched::visible(me, pc, Wait::Nothing, NEVER, true);
    freed::check(me, at, 1, pc);
    Some(me)
}

fn load<T: Cell>(at: *mut T, order: i32) -> T {
    let pc = hook::caller();
    let me = step(at as u64, false, pc);
    let value = T::load(at);
    hook::record(Kind::AtomicLoad, T::BYTES, at as u64, order as u16, pc, &[value.low()]);
    if let Some(me) = me {
        if hook::spins(me, pc, at as u64, value.low()) {
            sched::yield_turn(me, pc);
        }
    } else if hook::free() {
        hook::free_delay();
    }
    value
}

fn update<T: Cell>(at: *mut T, order: i32, kind: Kind, f: impl Fn(T) -> T) -> T {
    let pc = hook::caller();
    let note = |before: T, after: T| {
        hook::record(kind, T::BYTES, at as u64, order as u16, pc, &[before.low(), after.low()]);
    };
    if let Some(me) = step(at as u64, true, pc) {
        let before = T::load(at);
        note(before, f(before));
        // Some locks spin with updates that store the same value, such as a test-and-set that
        // finds the flag set.
        if f(before) != before {
            hook::changes(me, at as u64, f(before).low());
        } else if hook::spins(me, pc, at as u64, before.low()) {
            let (before, _) = apply(at, f);
            sched::yield_turn(me, pc);
            return before;
        }
        return apply(at, f).0;
    }
    if hook::free() {
        hook::free_delay();
    }
    let (before, after) = apply(at, f);
    note(before, after);
    before
}

fn compare_exchange<T: Cell>(at: *mut T, expected: T, new: T, order: i32) -> T {
    let pc = hook::caller();
    let note = |seen: T| {
        let kind = if seen == expected { Kind::AtomicSwap } else { Kind::AtomicMiss };
        hook::record(kind, T::BYTES, at as u64, order as u16, pc, &[seen.low(), new.low()]);
    };
    if let Some(me) = step(at as u64, true, pc) {
        let before = T::load(at);
        note(before);
        let seen = T::swap_if(at, expected, new);
        if seen == expected {
            hook::changes(me, at as u64, new.low());
        } else if hook::spins(me, pc, at as u64, seen.low()) {
            sched::yield_turn(me, pc);
        }
        return seen;
    }
    if hook::free() {
        hook::free_delay();
    }
    let seen = T::swap_if(at, expected, new);
    note(seen);
    seen
}

/// The C++ flavor: `expected` points to the expected value and receives the value found.
fn compare_exchange_in_place<T: Cell>(at: *mut T, expected: *mut T, new: T, order: i32) -> i32 {
    // SAFETY: the program's own variable, by the ABI.
    let wanted = unsafe { *expected };
    let seen = compare_exchange(at, wanted, new, order);
    if seen == wanted {
        return 1;
    }
    // SAFETY: as above.
    unsafe { *expected = seen };
    0
}

macro_rules! widths {
    ($($module:ident $int:ty: $load:ident $store:ident $exchange:ident $add:ident $sub:ident $and:ident $or:ident
       $xor:ident $nand:ident $strong:ident $weak:ident $val:ident;)*) => {$(
        mod $module {
            use super::*;

            export_cancellable! {
                $load => load;
                $store => store;
                $exchange => exchange;
                $add => fetch_add;
                $sub => fetch_sub;
                $and => fetch_and;
                $or => fetch_or;
                $xor => fetch_xor;
                $nand => fetch_nand;
                $strong => compare_exchange_strong;
                $weak => compare_exchange_strong;
                $val => compare_exchange_val;
            }

            extern "C" fn load(at: *mut $int, order: i32) -> $int {
                super::load(at, order)
            }
            extern "C" fn store(at: *mut $int, value: $int, order: i32) {
                update(at, order, Kind::AtomicStore, |_| value);
            }
            extern "C" fn exchange(at: *mut $int, value: $int, order: i32) -> $int {
                update(at, order, Kind::AtomicUpdate, |_| value)
            }
            extern "C" fn fetch_add(at: *mut $int, value: $int, order: i32) -> $int {
                update(at, order, Kind::AtomicUpdate, |old: $int| old.wrapping_add(value))
            }
            extern "C" fn fetch_sub(at: *mut $int, value: $int, order: i32) -> $int {
                update(at, order, Kind::AtomicUpdate, |old: $int| old.wrapping_sub(value))
            }
            extern "C" fn fetch_and(at: *mut $int, value: $int, order: i32) -> $int {
                update(at, order, Kind::AtomicUpdate, |old: $int| old & value)
            }
            extern "C" fn fetch_or(at: *mut $int, value: $int, order: i32) -> $int {
                update(at, order, Kind::AtomicUpdate, |old: $int| old | value)
            }
            extern "C" fn fetch_xor(at: *mut $int, value: $int, order: i32) -> $int {
                update(at, order, Kind::AtomicUpdate, |old: $int| old ^ value)
            }
            extern "C" fn fetch_nand(at: *mut $int, value: $int, order: i32) -> $int {
                update(at, order, Kind::AtomicUpdate, |old: $int| !(old & value))
            }
            extern "C" fn compare_exchange_strong(at: *mut $int, expected: *mut $int, new: $int, order: i32, _: i32) -> i32 {
                compare_exchange_in_place(at, expected, new, order)
            }
            extern "C" fn compare_exchange_val(at: *mut $int, expected: $int, new: $int, order: i32, _: i32) -> $int {
                compare_exchange(at, expected, new, order)
            }
        }
    )*};
}

widths! {
    bits8 u8: __tsan_atomic8_load __tsan_atomic8_store __tsan_atomic8_exchange __tsan_atomic8_fetch_add
        __tsan_atomic8_fetch_sub __tsan_atomic8_fetch_and __tsan_atomic8_fetch_or __tsan_atomic8_fetch_xor
        __tsan_atomic8_fetch_nand __tsan_atomic8_compare_exchange_strong __tsan_atomic8_compare_exchange_weak
        __tsan_atomic8_compare_exchange_val;
    bits16 u16: __tsan_atomic16_load __tsan_atomic16_store __tsan_atomic16_exchange __tsan_atomic16_fetch_add
        __tsan_atomic16_fetch_sub __tsan_atomic16_fetch_and __tsan_atomic16_fetch_or __tsan_atomic16_fetch_xor
        __tsan_atomic16_fetch_nand __tsan_atomic16_compare_exchange_strong __tsan_atomic16_compare_exchange_weak
        __tsan_atomic16_compare_exchange_val;
    bits32 u32: __tsan_atomic32_load __tsan_atomic32_store __tsan_atomic32_exchange __tsan_atomic32_fetch_add
        __tsan_atomic32_fetch_sub __tsan_atomic32_fetch_and __tsan_atomic32_fetch_or __tsan_atomic32_fetch_xor
        __tsan_atomic32_fetch_nand __tsan_atomic32_compare_exchange_strong __tsan_atomic32_compare_exchange_weak
        __tsan_atomic32_compare_exchange_val;
    bits64 u64: __tsan_atomic64_load __tsan_atomic64_store __tsan_atomic64_exchange __tsan_atomic64_fetch_add
        __tsan_atomic64_fetch_sub __tsan_atomic64_fetch_and __tsan_atomic64_fetch_or __tsan_atomic64_fetch_xor
        __tsan_atomic64_fetch_nand __tsan_atomic64_compare_exchange_strong __tsan_atomic64_compare_exchange_weak
        __tsan_atomic64_compare_exchange_val;
    bits128 u128: __tsan_atomic128_load __tsan_atomic128_store __tsan_atomic128_exchange __tsan_atomic128_fetch_add
        __tsan_atomic128_fetch_sub __tsan_atomic128_fetch_and __tsan_atomic128_fetch_or __tsan_atomic128_fetch_xor
        __tsan_atomic128_fetch_nand __tsan_atomic128_compare_exchange_strong __tsan_atomic128_compare_exchange_weak
        __tsan_atomic128_compare_exchange_val;
}

export! {
    __tsan_atomic_thread_fence => thread_fence;
}

extern "C" fn thread_fence(order: i32) {
    core::sync::atomic::fence(Ordering::SeqCst);
    hook::record(Kind::Fence, 0, 0, order as u16, hook::caller(), &[]);
}

/// Affects nothing that another thread could see.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn __tsan_atomic_signal_fence(_: i32) {}
