//! What the model cannot know by itself: the program's memory, the kernel, and the plan.

use raddle_trace::id::Site;

use super::schedule::Item;

/// Reads the surroundings of the model. Reading changes nothing that a decision depends on.
pub(crate) trait World {
    /// The word at an address of the program.
    fn word(&self, at: u64) -> u32;

    /// Whether one of `n` descriptors is ready; `at` is the address of their `pollfd`s.
    fn any_ready(&self, at: u64, n: u32) -> bool;

    /// Whether only threads of this process can make these descriptors ready, as far as it had no
    /// child process and no helpers.
    fn is_inside(&self, at: u64, n: u32) -> bool;

    /// Whether a child process has ended or stopped that is waited for in this way; `at` is the
    /// address of which, as in [`Wait::Child`](super::thread::Wait::Child). Also if there is none.
    fn has_child_changed(&self, at: u64) -> bool;

    /// Whether the process has a child that has not been waited for.
    fn has_children(&self) -> bool;

    /// Whether something else may act on descriptors of ours: a child process that was not created
    /// by libc, or asynchronous I/O of the kernel.
    fn has_helpers(&self) -> bool;

    /// An item of the schedule to follow; none after its end.
    fn schedule_item(&self, index: u64) -> Option<Item>;

    /// The site of a code address.
    fn site(&self, pc: u64) -> Site;
}
