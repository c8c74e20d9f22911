//! Reports: what a command has to say, as one value, and how it is shown.
//!
//! [`model`] is plain data, the same for every form of output; other programs read it as JSON
//! (`schema` says which kind and version). [`name`] turns ids into a [`model::Report`], with names
//! from debug information. [`render`] has one file per form of output; a renderer decides nothing.
//!
//! `model` and `render` see only plain data: none of their files uses another crate of ours.

pub mod model;
pub mod name;
pub mod render;
