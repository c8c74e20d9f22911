//! What the compiler calls.

mod access;
mod annotate;
mod atomic;
mod frame;
pub(crate) mod stub;

/// The processor's time stamp counter.
pub(crate) fn time_stamp() -> u64 {
    // SAFETY: reads a counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}
