//! Objects that are shared between processes, as glibc marks them and keeps their state.

use raddle_trace::record::Lock;

use super::object::Object;
use super::thread::Wait;
use super::{Model, World};

/// The owner in the first word of a mutex; the rest are flags.
const OWNER: u32 = 0x3fff_ffff;
/// In the first word of a reader-writer lock: a writer holds it.
const WRITTEN: u32 = 2;
/// In the same word: where the number of readers starts.
const READERS_SHIFT: u32 = 3;

impl Model {
    /// Whether what is waited for may be shared between processes.
    pub(crate) fn is_shared(&self, wait: Wait, world: &impl World) -> bool {
        let word = |at: u64, index: u64| world.word(at + 4 * index);
        match wait {
            // A spin lock has no mark.
            Wait::Lock(at) if self.kind_of(at) == Some(Lock::Spin) => true,
            // `__kind`, and in it PTHREAD_MUTEX_PSHARED_BIT.
            Wait::Lock(at) => self.kind_of(at) == Some(Lock::Mutex) && word(at, 4) & 128 != 0,
            // `__shared`.
            Wait::ReadLock(at) | Wait::WriteLock(at) => word(at, 7) != 0,
            // `__wrefs`.
            Wait::Cond(at) => word(at, 9) & 1 != 0,
            // `private`, which is 0 if it is.
            Wait::Semaphore(at) => word(at, 2) != 0,
            Wait::SharedBarrier(..) => true,
            Wait::Nothing
            | Wait::Futex(..)
            | Wait::Barrier(..)
            | Wait::Join(_)
            | Wait::Once(_)
            | Wait::Guard(_)
            | Wait::Loader(_)
            | Wait::Timer
            | Wait::Unwaited(_)
            | Wait::Sleep
            | Wait::Descriptors(..)
            | Wait::Peer(..)
            | Wait::Child(_)
            | Wait::Signal
            | Wait::SignalOf(_)
            | Wait::Outside
            | Wait::Back => false,
        }
    }

    fn kind_of(&self, at: u64) -> Option<Lock> {
        self.objects.get(&at).map(|object| object.kind)
    }

    /// A lock that a thread of ours holds in the model may have been released by a child process,
    /// which the model then follows. Returns whether it has been.
    pub(crate) fn settle(&mut self, wait: Wait, world: &impl World) -> bool {
        let (Wait::Lock(at) | Wait::ReadLock(at) | Wait::WriteLock(at)) = wait else {
            return false;
        };
        if self.n_processes == 0 || !self.is_shared(wait, world) {
            return false;
        }
        let word = world.word(at);
        let is_released = match (self.kind_of(at), wait) {
            (Some(Lock::Mutex), _) => word & OWNER == 0,
            (Some(Lock::Spin), _) => word as i32 > 0,
            (Some(Lock::RwLock), Wait::ReadLock(_)) => word & WRITTEN == 0,
            (Some(Lock::RwLock), _) => word & WRITTEN == 0 && word >> READERS_SHIFT == 0,
            (Some(_) | None, _) => false,
        };
        let Some(object) = self
            .objects
            .get_mut(&at)
            .filter(|object| is_released && !(object.is_free() && object.readers.is_empty()))
        else {
            return false;
        };
        *object = Object { writers_first: object.writers_first, ..Object::new(object.kind) };
        true
    }
}
