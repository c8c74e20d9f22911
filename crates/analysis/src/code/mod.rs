//! What machine code tells: the ways through a function, and the loops that an access was in.
//!
//! A program that was compiled with plain `-fsanitize=thread` tells which functions it enters
//! and leaves, and the site of each access; nothing of loops. But the sites that a thread
//! passes through in one activation of a function walk a path in that function's control flow
//! graph, and often the path between two neighbours is known well enough to count:
//!
//! - [`body`] decodes a function to instructions and who may come after whom,
//! - [`cfg`] makes basic blocks of them, and the edges between them,
//! - [`loops`] finds the loops of a function and how they nest,
//! - [`functions`] finds the function that an address lies in, and keeps what is known of it,
//! - [`iterations`] follows threads, and tells the loops and iterations of each site.
//!
//! Who wants to know where the ways of a branch meet again takes a [`body`] and its
//! [`dominators`].
//!
//! Bytes come in through [`functions::Image`]: nothing here opens a file.

pub mod body;
pub mod cfg;
pub mod dominators;
pub mod loops;
pub mod functions;
pub mod iterations;
#[cfg(test)]
mod sketch;
