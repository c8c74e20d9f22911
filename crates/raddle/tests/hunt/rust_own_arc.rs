// What is wrong: a home-made `Arc` lowers its count by a load and a store. If two threads drop
// at once, one of the two decrements is lost, and the value is never dropped; or both see the
// last reference, and drop it twice.
// Hunt: fails
// Kind: atomicity
// Guilty: 2 lines
// Shows: assert, double-free, use-after-free, signal

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

struct Inner<T> {
    count: AtomicUsize,
    value: T,
}

struct Shared<T>(NonNull<Inner<T>>);

// SAFETY: the value is only read.
unsafe impl<T: Send + Sync> Send for Shared<T> {}

impl<T> Shared<T> {
    fn new(value: T) -> Self {
        let inner = Box::new(Inner { count: AtomicUsize::new(1), value });
        Self(NonNull::from(Box::leak(inner)))
    }

    fn inner(&self) -> &Inner<T> {
        // SAFETY: there is at least this reference.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        self.inner().count.fetch_add(1, Ordering::SeqCst);
        Self(self.0)
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.inner().value
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let left = self.inner().count.load(Ordering::SeqCst) - 1; // guilty
        self.inner().count.store(left, Ordering::SeqCst); // guilty
        if left == 0 {
            // SAFETY: none: another one may believe the same.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

static N_DROPPED: AtomicUsize = AtomicUsize::new(0);

struct Image {
    pixels: Vec<u8>,
}

impl Drop for Image {
    fn drop(&mut self) {
        N_DROPPED.fetch_add(1, Ordering::SeqCst);
    }
}

fn main() {
    let image = Shared::new(Image { pixels: vec![1; 16] });
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let image = image.clone();
            thread::spawn(move || image.pixels.iter().map(|&pixel| u32::from(pixel)).sum::<u32>())
        })
        .collect();
    drop(image);
    for thread in threads {
        assert_eq!(thread.join().unwrap(), 16);
    }
    assert_eq!(N_DROPPED.load(Ordering::SeqCst), 1);
}
