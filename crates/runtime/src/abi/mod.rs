//! What the compiler calls.

mod access;
mod annotate;
mod atomic;
mod frame;
mod lock;
mod sanitizer;
