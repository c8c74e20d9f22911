//! Localization: many runs, and what those that fail have in common.

pub mod collect;
mod woven;
