//! The control block, as mapped by the target.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use raddle_trace::control::{
    Control, Death, EXTERNAL, Ending, FollowStep, Lane, Layout, MAGIC, MESSAGE_BYTES, MODULES_MAX,
    Module, Outside, THREADS_MAX, ThreadSlot, VERSION,
};

use crate::sys;

static BLOCK: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static FOLLOW: AtomicU32 = AtomicU32::new(0);
static LANES: AtomicU32 = AtomicU32::new(0);

/// The mode, which the access path checks. [`OFF`] until a plan is found.
pub(crate) static MODE: AtomicU8 = AtomicU8::new(OFF);

/// Not under control: everything goes straight to libc.
pub(crate) const OFF: u8 = 0;
/// Controlled, and accesses are recorded.
pub(crate) const TRACE: u8 = 1;
/// Free: every access takes the slow path, which stamps, records and delays.
pub(crate) const FREE: u8 = 2;
/// Free, and the history of each memory location is kept ([`crate::history`]).
pub(crate) const COLLECT_FREE: u8 = 3;
/// Controlled, and the history of each memory location is kept.
pub(crate) const COLLECT: u8 = 4;
/// Controlled, and accesses are only counted.
pub(crate) const COUNT: u8 = 5;
/// Like [`COUNT`], with freed memory to watch for.
pub(crate) const WATCH: u8 = 6;

/// From now on there is freed memory to watch for.
pub(crate) fn watch() {
    // Other modes watch for it anyway, or not at all.
    let _ = MODE.compare_exchange(COUNT, WATCH, Ordering::Relaxed, Ordering::Relaxed);
}

/// The current mode.
#[inline(always)]
pub(crate) fn mode() -> u8 {
    MODE.load(Ordering::Relaxed)
}

/// Whether threads are under control, traced or not.
#[inline(always)]
pub(crate) fn controlled() -> bool {
    matches!(mode(), COUNT | WATCH | TRACE | COLLECT)
}

/// Whether threads run free.
#[inline(always)]
pub(crate) fn free() -> bool {
    matches!(mode(), FREE | COLLECT_FREE)
}

/// The process id of our parent, set at start.
pub(crate) static PARENT: AtomicU64 = AtomicU64::new(0);

/// Opens a file that the parent has open under this descriptor.
pub(crate) fn open_of_parent(descriptor: u64) -> Option<i64> {
    let parent = PARENT.load(Ordering::Relaxed);
    let path = sys::Path::new(b"/proc/").number(parent).text(b"/fd/").number(descriptor);
    let file = sys::open(&path, libc::O_RDWR);
    (file >= 0).then_some(file)
}

/// Maps the block that `descriptor` refers to and claims it for this process. None if its version
/// is unknown, or another process has claimed it.
pub(crate) fn attach(descriptor: i64) -> Option<&'static Control> {
    let head = sys::map_shared(descriptor, size_of::<Control>());
    if head.is_null() {
        return None;
    }
    // SAFETY: the mapping is at least as long, stays for good, and holds atomics only.
    let control = unsafe { &*head.cast::<Control>() };
    if control.magic.load(Ordering::Relaxed) != MAGIC {
        return None;
    }
    if control.version.load(Ordering::Relaxed) != VERSION {
        sys::complain(b"raddle: the runtime and raddle are of different versions\n");
        return None;
    }
    let me = sys::getpid();
    control.claimed.compare_exchange(0, me, Ordering::AcqRel, Ordering::Relaxed).ok()?;
    let layout = Layout {
        n_follow: control.plan.n_follow.load(Ordering::Relaxed) as usize,
        n_lanes: control.plan.n_lanes.load(Ordering::Relaxed) as usize,
    };
    let block = sys::map_shared(descriptor, layout.bytes());
    if block.is_null() {
        return None;
    }
    FOLLOW.store(layout.n_follow as u32, Ordering::Relaxed);
    LANES.store(layout.n_lanes as u32, Ordering::Relaxed);
    BLOCK.store(block, Ordering::Release);
    Some(self::control())
}

fn layout() -> Layout {
    Layout {
        n_follow: FOLLOW.load(Ordering::Relaxed) as usize,
        n_lanes: LANES.load(Ordering::Relaxed) as usize,
    }
}

fn block() -> *mut u8 {
    let block = BLOCK.load(Ordering::Acquire);
    assert!(!block.is_null(), "internal bug: the control block is used before it is mapped");
    block
}

/// The head of the control block.
pub(crate) fn control() -> &'static Control {
    // SAFETY: the mapping starts with it and stays for good.
    unsafe { &*block().cast::<Control>() }
}

/// The slot of a thread.
pub(crate) fn slot(thread: u32) -> &'static ThreadSlot {
    assert!((thread as usize) < THREADS_MAX, "internal bug: thread {thread} has no slot");
    // SAFETY: within the mapping, as the layout has room for THREADS_MAX slots.
    unsafe { &*block().add(layout().threads()).cast::<ThreadSlot>().add(thread as usize) }
}

/// The entry of a module.
pub(crate) fn module(index: usize) -> &'static Module {
    assert!(index < MODULES_MAX, "internal bug: module {index} has no entry");
    // SAFETY: within the mapping, as the layout has room for MODULES_MAX modules.
    unsafe { &*block().add(layout().modules()).cast::<Module>().add(index) }
}

/// Where the state of a thread is kept that a signal kills.
pub(crate) fn death() -> &'static Death {
    // SAFETY: within the mapping, as the layout has room for one.
    unsafe { &*block().add(layout().death()).cast::<Death>() }
}

/// A step of the schedule to follow, or none after its end.
pub(crate) fn follow(index: u64) -> Option<&'static FollowStep> {
    if index >= layout().n_follow as u64 {
        return None;
    }
    // SAFETY: within the mapping, by the check above.
    Some(unsafe { &*block().add(layout().follow()).cast::<FollowStep>().add(index as usize) })
}

/// A lane and the address of its ring; none if the index is too large.
pub(crate) fn lane(index: usize) -> Option<(&'static Lane, u64)> {
    if index >= layout().n_lanes {
        return None;
    }
    // SAFETY: within the mapping, by the check above.
    let lane = unsafe { &*block().add(layout().lanes()).cast::<Lane>().add(index) };
    let ring =
        block() as u64 + (layout().rings() + index * raddle_trace::control::LANE_BYTES) as u64;
    Some((lane, ring))
}

/// Stores how the run ended, unless that is already stored. The message is truncated to fit.
pub(crate) fn fail(ending: Ending, message: &[u8]) {
    if BLOCK.load(Ordering::Acquire).is_null() {
        return;
    }
    let control = control();
    if control.ending.load(Ordering::Acquire) != Ending::None as u32 {
        return;
    }
    let n = message.len().min(MESSAGE_BYTES);
    for (to, from) in control.message.iter().zip(message) {
        to.store(*from, Ordering::Relaxed);
    }
    control.message_len.store(n as u32, Ordering::Relaxed);
    control.ending.store(ending as u32, Ordering::Release);
}

/// Sets a flag of [`Control::flags`].
pub(crate) fn flag(flag: u32) {
    control().flags.fetch_or(flag, Ordering::Relaxed);
}

/// Notes what the run depended on that is not controlled, and where. The first counts.
pub(crate) fn blame(outside: Outside, pc: u64) {
    let control = control();
    if control.outside.load(Ordering::Relaxed) == 0 {
        control.outside_pc.store(pc, Ordering::Relaxed);
        control.outside.store(outside as u32, Ordering::Relaxed);
    }
    flag(EXTERNAL);
}
