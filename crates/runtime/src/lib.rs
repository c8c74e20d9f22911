//! The library inside the target.
//!
//! It takes the place of `libtsan.so.2`: the compiler's callbacks before each access, and the
//! libc functions by which threads communicate, end up here. Ground rules, which the rest of the
//! crate relies on:
//!
//! - **One at a time.** Under control a thread touches the `sched` and appends to the `lane` only
//!   while it holds the turn or the scheduler's lock.
//! - **Raw system calls.** We interpose libc, so what we need from the kernel goes through `sys`.
//!   We call only those libc functions that we replace (`real`), and only when they will not
//!   block.
//! - **Own memory.** Nothing comes from the target's heap; `heap` serves `alloc`.
//! - **Nothing unwinds** into the target, and no frame of ours is unwound: where the target's
//!   code may throw or be cancelled below us, the frame is assembly (`export`).
//! - **No analysis.** Nothing is symbolized, sorted or formatted here. The parent does that.
//! - **Any time.** Every entry point works before the start and after the end: until
//!   `__tsan_init` has found a plan, and in a forked child, calls go straight to libc.
#![cfg_attr(not(test), no_std)]
#![cfg_attr(
    test,
    expect(non_snake_case, reason = "names of the C ABI, which are not exported in a test")
)]
#![cfg_attr(test, allow(dead_code, reason = "a test exports nothing, so nothing calls us"))]

extern crate alloc;

#[allow(unsafe_code, reason = "system calls")]
mod sys;
#[allow(unsafe_code, reason = "reads what the kernel has stored")]
mod proc;
#[macro_use]
#[allow(unsafe_code, reason = "ends the process by a system call")]
mod die;
#[cfg(all(feature = "standalone", not(test)))]
#[allow(unsafe_code, reason = "the allocator behind `alloc`")]
mod heap;
#[allow(unsafe_code, reason = "a cell behind a lock")]
mod guarded;
#[allow(unsafe_code, reason = "thread-local words without a call")]
mod tls;
#[allow(unsafe_code, reason = "maps the memory shared with the parent")]
mod shared;
mod repeats;
#[allow(unsafe_code, reason = "appends to memory shared with the parent")]
mod lane;
#[allow(unsafe_code, reason = "walks the loader's list of modules")]
mod modules;
#[allow(unsafe_code, reason = "the C ABI: frames that the target unwinds through")]
mod export;
#[allow(unsafe_code, reason = "the functions that we replace")]
mod real;
#[allow(unsafe_code, reason = "reads the loader's locks")]
mod loader;
#[allow(unsafe_code, reason = "calls libc, and stores where the program says")]
mod key;
#[allow(unsafe_code, reason = "asks the kernel about descriptors")]
mod inside;
mod random;
mod allow;
#[allow(unsafe_code, reason = "reads errno and the frames of running handlers")]
mod handler;
#[allow(unsafe_code, reason = "calls the program's signal handlers")]
mod signals;
#[allow(unsafe_code, reason = "the shadow of the target's heap")]
mod freed;
#[allow(unsafe_code, reason = "the states of the target's memory, shared with the parent")]
mod history;
#[allow(unsafe_code, reason = "waits for descriptors and threads")]
mod sched;
mod hook;
#[allow(unsafe_code, reason = "the C ABI: what the compiler calls")]
mod abi;
#[allow(unsafe_code, reason = "the C ABI: what we replace of libc")]
mod interpose;
#[allow(unsafe_code, reason = "start and end of the runtime")]
mod start;
