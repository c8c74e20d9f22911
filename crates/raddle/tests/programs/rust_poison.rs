// About: a panic under a Mutex and an RwLock: poisoning, join gives the error, the program goes on.
// Covers: AtomicUpdate, AtomicSwap
// Outcome: exit 0

use std::panic;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;

fn main() {
    panic::set_hook(Box::new(|_| {}));
    let lock = Arc::new(Mutex::new(1));
    let shared = Arc::new(RwLock::new(1));
    let theirs = (Arc::clone(&lock), Arc::clone(&shared));
    let outcome = thread::spawn(move || {
        let mut value = theirs.0.lock().unwrap();
        let mut other = theirs.1.write().unwrap();
        *value = 2;
        *other = 2;
        panic!("while both are held");
    })
    .join();
    let payload = outcome.unwrap_err();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"while both are held"));

    assert!(lock.is_poisoned() && lock.lock().is_err() && shared.read().is_err());
    let value = lock.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(*value, 2);
    drop(value);
    lock.clear_poison();
    assert_eq!(*lock.lock().unwrap(), 2);

    let caught = panic::catch_unwind(|| panic!("and caught"));
    assert!(caught.is_err() && !thread::panicking());
}
