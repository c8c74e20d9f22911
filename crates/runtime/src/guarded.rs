//! A value protected by a lock that parks with a futex and never calls libc.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU32, Ordering};

use crate::sys;

/// For [`Guarded::lock_soon`]: number of attempts before sleeping, number of sleeps, and their
/// duration.
const SPINS: u32 = 200;
const WAITS: u32 = 300;
const WAIT_NS: u64 = 10_000_000;

/// A value that one thread uses at a time.
pub(crate) struct Guarded<T> {
    /// 0 free, 1 held, 2 held and contended.
    word: AtomicU32,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through the lock.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    /// Creates an unlocked value.
    pub(crate) const fn new(value: T) -> Self {
        Self { word: AtomicU32::new(0), value: UnsafeCell::new(value) }
    }

    /// Acquires the lock.
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        if self.word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            while self.word.swap(2, Ordering::Acquire) != 0 {
                sys::futex_wait(&self.word, 2, None, false);
            }
        }
        Guard { owner: self }
    }

    /// Acquires the lock, which is never held for long, but gives up after a while: the holder
    /// may never return.
    pub(crate) fn lock_soon(&self) -> Option<Guard<'_, T>> {
        for _ in 0..SPINS {
            if let Some(guard) = self.try_lock() {
                return Some(guard);
            }
            core::hint::spin_loop();
        }
        for _ in 0..WAITS {
            if self.word.swap(2, Ordering::Acquire) == 0 {
                return Some(Guard { owner: self });
            }
            sys::futex_wait(&self.word, 2, Some(WAIT_NS), false);
        }
        None
    }

    /// Acquires the lock if it is free.
    pub(crate) fn try_lock(&self) -> Option<Guard<'_, T>> {
        self.word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(Guard { owner: self })
    }

    /// Releases the lock, which may be held by another thread: in a forked child, the holder does not exist.
    pub(crate) fn break_lock(&self) {
        self.word.store(0, Ordering::Release);
    }
}

/// Access to the value while the lock is held.
pub(crate) struct Guard<'a, T> {
    owner: &'a Guarded<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: we hold the lock.
        unsafe { &*self.owner.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: we hold the lock.
        unsafe { &mut *self.owner.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        if self.owner.word.swap(0, Ordering::Release) == 2 {
            sys::futex_wake(&self.owner.word, false);
        }
    }
}
