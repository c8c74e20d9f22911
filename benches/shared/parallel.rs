//! A few workers that share a list of jobs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What `job` makes of each item, in the order of the items; `job` is also told the number of
/// the item, from 1 on.
///
/// # Panics
/// If a job does.
pub fn map<T: Sync, R: Send>(
    n_workers: usize,
    items: &[T],
    job: impl Fn(usize, &T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..n_workers {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(at) else { break };
                    let result = job(at + 1, item);
                    done.lock().expect("no worker panics").push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no worker panics");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items() {
        let items: Vec<usize> = (0..100).collect();
        assert_eq!(map(4, &items, |n, item| n + item), (1..200).step_by(2).collect::<Vec<_>>());
    }
}
