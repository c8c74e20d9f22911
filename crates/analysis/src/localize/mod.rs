//! Localization: what failing runs have that passing runs have not.
//!
//! Two techniques, one collection. Per place of memory there is a short window of accesses, out
//! of which Falcon's patterns come ([`window`]), and the last accesses, out of which LOCON's
//! access pairs come ([`pairs`]). The target keeps them while it runs, and [`recall`] reads what
//! it has left; or a [`Collector`](collect::Collector) makes them from the run's records, with
//! more detail and for more time. What remains of a run is a set of both ([`Facts`](facts::Facts)),
//! which is small: it grows with the code that touches shared memory, not with how often it does.
//!
//! From many runs, [`rank`] orders patterns by how well they tell failing runs from passing
//! ones (Falcon: Park, Vuduc, Harrold, «Falcon: Fault Localization in Concurrent Programs»,
//! ICSE 2010), and [`procedures`] finds the pairs to blame for one failed run (LOCON: Wang et
//! al., «Localization of Concurrency Bugs Using Shared Memory Access Pairs», ASE 2014).
//!
//! Deviations. A place is a byte, and bytes to which the same has happened are one place. Freed
//! memory is written; allocated anew, or as the stack of a new thread, it is new.
//! Windows are drained when a run ends, which the printed algorithm leaves out.

pub mod collect;
pub mod facts;
pub mod pairs;
pub mod procedures;
pub mod rank;
pub mod recall;
pub mod runs;
pub mod window;
