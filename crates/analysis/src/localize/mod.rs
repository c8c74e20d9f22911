//! Localization: what failing runs have that passing runs lack.
//!
//! Two techniques share one collection. For each memory location there is a short window of
//! accesses, which yields Falcon's patterns ([`window`]), and the last accesses, which yield
//! LOCON's access pairs ([`pairs`]). Either the target keeps them while it runs and [`recall`]
//! reads the result; or a [`Collector`](collect::Collector) computes them from the run's records,
//! slower and in more detail. The [`Facts`](facts::Facts) of a run are small: they grow with the
//! code that touches shared memory, not with how often it does.
//!
//! Over many runs, [`rank`] orders patterns by how well they separate failing from passing runs
//! (Falcon: Park, Vuduc, Harrold, «Falcon: Fault Localization in Concurrent Programs», ICSE
//! 2010), and [`procedures`] finds the pairs to blame for one failing run (LOCON: Wang et al.,
//! «Localization of Concurrency Bugs Using Shared Memory Access Pairs», ASE 2014).
//!
//! Deviations: a location is a byte, and bytes with the same history are one location. Freeing
//! memory writes it; memory that is allocated, or becomes the stack of a new thread, starts over.
//! Windows are drained when a run ends, which the published algorithm omits.
//!
//! **What counts as an access.** Synchronization objects count as memory. A wake-up writes what
//! a wait reads, so one that comes too early is a pair like any other. Acquiring and releasing
//! a lock read it; only its initialization and destruction write it, so a lock that is
//! destroyed too early is destroyed before it was released. A semaphore is written when it is
//! incremented or decremented and read when its value is asked for; a thread that is blocked on one
//! when the run ends counts as decrementing it. In a deadlock, a thread that is blocked on a lock
//! and the thread that acquired it form a pair and a pattern of their own (`A1-B2`): Falcon and
//! LOCON leave deadlocks out, but who waits for whom is known when they happen.
//!
//! **What a run has.** Falcon's windows yield a pattern of two accesses only where no third one
//! follows, and in a run that its failure cuts short, much does not follow. Counted that way,
//! whatever main looks at in the end would be most suspect. So a run also has a pattern of two
//! where it goes on to three, or where it has the two as an access pair. What a failing run
//! would have had if it had gone on (LOCON's second procedure: a read without the write that it
//! needs) is a pattern too, unless the run performed both accesses. The operation for which a
//! run is ended, such as the use of a destroyed object, is its last access. In addition to
//! LOCON's procedures, all pairs are ranked by Falcon's suspicion: with code that all threads
//! share, no pair is in failing runs only.
//!
//! **Limits.** What is not an event cannot be blamed, such as a message from another process.

pub mod collect;
pub mod facts;
pub mod formula;
pub mod pairs;
pub mod procedures;
pub mod rank;
pub mod recall;
pub mod runs;
pub mod window;
