//! ELF files and machine code: what a module's file says about the code that ran.
//!
//! - [`elf`] reads module files, each once,
//! - [`program`] decides whether a program can be a target,
//! - [`module`] provides a module's code, symbols and landing pads as an [`image::Image`], which
//!   is all that the analyses below see,
//! - [`body`] decodes a function to instructions and the edges between them,
//! - [`mod@cfg`] divides them into basic blocks,
//! - [`dominators`] finds where the paths of a branch meet again,
//! - [`loops`] finds the loops of a function and how they nest,
//! - [`functions`] finds the function that contains an address, and caches what is known of it,
//! - [`iterations`] follows threads, and determines the loops and iterations of each site,
//! - [`unwind`] reconstructs call stacks.
//!
//! # Loops without instrumentation
//! A program compiled with plain `-fsanitize=thread` reports which functions it enters and leaves
//! and the site of each access, but nothing about loops. The sites that a thread passes in one
//! activation of a function trace a path through that function's control flow graph, and the path
//! between two neighboring sites is often known well enough to count iterations.

pub mod elf;
pub mod program;
pub mod image;
pub mod body;
pub mod cfg;
pub mod dominators;
pub mod loops;
pub mod functions;
pub mod iterations;
mod exceptions;
pub mod module;
pub mod unwind;
#[cfg(test)]
mod sketch;
