//! Which operations of a target count as steps.
//!
//! A schedule says how many steps a thread runs, so it is only as good as the count. Whenever the
//! runtime makes a step of an operation that was none, or the reverse, the steps of older clips no
//! longer lead to the same places. A clip therefore names the version that it was made with. One
//! with another version is followed by its sites: a thread that has performed its steps and is not
//! where it should stop goes on until it gets there. That works for steps that were added. If the
//! run ends in another way than the clip says, it is not judged: the clip has to be made anew.

/// The steps that the runtime counts. **Raise it** with any change after which a program has more
/// or fewer steps than before: a function that is newly interposed and waits for its turn, one
/// that no longer does, an access that is newly recorded by the runtime itself. Then describe the
/// change here, and keep a clip of the version before in `tests/formats`.
///
/// | version | what changed |
/// |---|---|
/// | 1 | clips that name no version |
/// | 2 | new steps: closing or shutting down a pipe, socket, or event counter; `munmap`, `mremap`, and mapping over memory; stdio that reads and writes pipes; message queues, file locks, and `wait3`; what the fortified variants and the `str*`, `wcs*`, `qsort`, and `stat` families touch; destroying semaphores, spin locks, and barriers; waiting for a child in `system` and `pclose` |
pub const STEP_VERSION: u32 = 2;

/// The version of a clip that names none.
pub const UNNAMED: u32 = 1;
