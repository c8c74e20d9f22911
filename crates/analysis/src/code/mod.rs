//! What machine code tells about the loops that an access was in.
//!
//! A program that was compiled with plain `-fsanitize=thread` tells which functions it enters
//! and leaves, and the site of each access; nothing of loops. But the sites that a thread
//! passes through in one activation of a function walk a path in that function's control flow
//! graph, and often the path between two neighbours is known well enough to count:
//!
//! - [`cfg`] decodes a function to basic blocks and the edges between them,
//! - [`dominators`] are worked out for any graph,
//! - [`loops`] finds the loops of a function and how they nest,
//! - [`functions`] finds the function that an address lies in, and keeps what is known of it,
//! - [`iterations`] follows threads, and tells the loops and iterations of each site.
//!
//! Bytes come in through [`functions::Image`]: nothing here opens a file.

pub mod cfg;
pub mod dominators;
pub mod loops;
pub mod functions;
pub mod iterations;
mod tables;
#[cfg(test)]
mod sketch;
