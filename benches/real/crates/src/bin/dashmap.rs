//! A map in shards: entries, iteration beside writers, removal, and a cache that computes once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use dashmap::mapref::entry::Entry;
use dashmap::{DashMap, DashSet};

const N_KEYS: u64 = 24;
const N_ROUNDS: u64 = 4;
const N_THREADS: u64 = 4;

fn main() {
    let counts = count();
    let moved = transfer();
    let computed = compute_once();
    let left = remove();
    println!("counts {counts}, moved {moved}, computed {computed}, left {left}");
}

/// Each thread adds to every entry, in another order.
fn count() -> u64 {
    let map: DashMap<u64, u64> = DashMap::with_shard_amount(8);
    thread::scope(|scope| {
        for thread in 0..N_THREADS {
            let map = &map;
            scope.spawn(move || {
                for n in 0..N_KEYS * N_ROUNDS {
                    *map.entry((7 * n + thread) % N_KEYS).or_insert(0) += 1;
                }
            });
        }
        // What an iteration sees may be old, but it is never torn.
        for _ in 0..3 {
            assert!(map.iter().all(|entry| *entry.value() <= N_ROUNDS * N_THREADS));
        }
    });
    assert!(map.iter().all(|entry| *entry.value() == N_ROUNDS * N_THREADS));
    map.iter().map(|entry| entry.key() * entry.value()).sum()
}

/// Moves money between accounts; two entries are never held at a time.
fn transfer() -> u64 {
    let accounts: Arc<DashMap<String, u64>> = Arc::new(DashMap::with_shard_amount(4));
    for id in 0..6 {
        accounts.insert(format!("account {id}"), 100);
    }
    let moved = Arc::new(AtomicU64::new(0));
    let threads = (0..3).map(|thread| {
        let (accounts, moved) = (Arc::clone(&accounts), Arc::clone(&moved));
        thread::spawn(move || {
            for n in 0..30 {
                let from = format!("account {}", (thread + n) % 6);
                let to = format!("account {}", (thread + 2 * n + 1) % 6);
                let amount = accounts.get_mut(&from).map_or(0, |mut balance| {
                    let amount = n.min(*balance);
                    *balance -= amount;
                    amount
                });
                accounts.alter(&to, |_, balance| balance + amount);
                moved.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    let threads: Vec<_> = threads.collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(accounts.iter().map(|account| *account).sum::<u64>(), 600);
    moved.load(Ordering::Relaxed)
}

/// Who finds no entry computes it, holding its shard; so nothing is computed twice.
fn compute_once() -> u64 {
    let (cache, n_computed) = (DashMap::with_shard_amount(4), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..N_THREADS {
            scope.spawn(|| {
                for n in 0..20_u64 {
                    let square = match cache.entry(n % 10) {
                        Entry::Occupied(entry) => *entry.get(),
                        Entry::Vacant(entry) => {
                            n_computed.fetch_add(1, Ordering::Relaxed);
                            *entry.insert(n * n)
                        }
                    };
                    assert_eq!(square, (n % 10) * (n % 10));
                }
            });
        }
    });
    n_computed.into_inner()
}

/// Exactly one thread removes each member, beside one that shrinks and looks.
fn remove() -> u64 {
    let set: DashSet<u64> = (0..60).collect();
    let n_removed = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let n = (0..40).filter(|n| set.remove(n).is_some()).count();
                n_removed.fetch_add(n as u64, Ordering::Relaxed);
            });
        }
        scope.spawn(|| {
            set.retain(|n| n % 10 != 9);
            set.shrink_to_fit();
            assert!((40..60).filter(|n| set.contains(n)).count() == 18);
        });
    });
    let left = set.len() as u64;
    // Of the first 40, the four that end in 9 went either way.
    assert!(left == 18 && (36..=40).contains(&n_removed.into_inner()));
    left
}
