// About: Once, OnceLock, LazyLock from several threads; a Once that a panic poisons.
// Covers: syscall, AtomicSwap, OnceBegin, OnceEnd, OncePass, FutexWait, FutexWoken, FutexWake,
// Covers: Yield
// Outcome: exit 0

use std::panic;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Once, OnceLock};
use std::thread;

static N_INITS: AtomicU32 = AtomicU32::new(0);
static ONCE: Once = Once::new();
static NAME: OnceLock<String> = OnceLock::new();
static TABLE: LazyLock<Vec<u32>> = LazyLock::new(|| {
    N_INITS.fetch_add(100, Ordering::Relaxed);
    thread::yield_now();
    (0..20).map(|n| n * n).collect()
});

fn main() {
    thread::scope(|scope| {
        for me in 0..4 {
            scope.spawn(move || {
                ONCE.call_once(|| {
                    thread::yield_now();
                    N_INITS.fetch_add(1, Ordering::Relaxed);
                });
                assert!(ONCE.is_completed() && N_INITS.load(Ordering::Relaxed) % 100 == 1);
                let name = NAME.get_or_init(|| format!("by {me}"));
                assert!(name.starts_with("by ") && NAME.get() == Some(name));
                assert_eq!(TABLE[19], 361);
            });
        }
    });
    assert_eq!(N_INITS.load(Ordering::Relaxed), 101);
    assert_eq!(NAME.set(String::new()), Err(String::new()));

    panic::set_hook(Box::new(|_| {}));
    let broken = Once::new();
    thread::scope(|scope| {
        let first = scope.spawn(|| broken.call_once(|| panic!("not this time")));
        assert!(first.join().is_err());
        assert!(scope.spawn(|| broken.call_once(|| ())).join().is_err());
    });
    broken.call_once_force(|state| assert!(state.is_poisoned()));
    assert!(broken.is_completed());
}
