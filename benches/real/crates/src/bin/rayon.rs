//! A parallel merge sort, a map and reduce over text, and nested scopes, checked against the same
//! without threads.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

type Table<'a> = BTreeMap<&'a str, u64>;

fn main() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().expect("a pool");
    pool.install(work);
}

fn work() {
    let values = numbers(600);
    let mut expected = values.clone();
    expected.sort_unstable();

    let mut merged = values.clone();
    merge_sort(&mut merged);
    assert_eq!(merged, expected);
    let mut sorted = values.clone();
    sorted.par_sort_unstable();
    assert_eq!(sorted, expected);

    let words = ["warp", "weft", "heddle", "reed", "shuttle"];
    let line = |values: &[u64]| -> String {
        let words: Vec<&str> = values.iter().map(|&n| words[n as usize % words.len()]).collect();
        words.join(" ")
    };
    let lines: Vec<String> = values.chunks(7).map(line).collect();
    let table = count_words(&lines);
    assert_eq!(table, lines.iter().fold(Table::new(), count));

    // The sum of squares, by an iterator and by tasks that spawn tasks.
    let squares: u64 = values.par_iter().map(|n| n * n).sum();
    let (total, order) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    rayon::scope(|scope| {
        for (index, chunk) in values.chunks(100).enumerate() {
            let (total, order) = (&total, &order);
            scope.spawn(move |scope| {
                for half in chunk.chunks(50) {
                    scope.spawn(move |_| {
                        let sum = half.iter().map(|n| n * n).sum();
                        total.fetch_add(sum, Ordering::Relaxed);
                    });
                }
                order.lock().expect("nobody panics").push(index);
            });
        }
    });
    assert_eq!(total.into_inner(), squares);
    let mut order = order.into_inner().expect("nobody panics");
    order.sort_unstable();
    assert_eq!(order, [0, 1, 2, 3, 4, 5]);

    // The first match, however the work is divided.
    let first = values.par_iter().position_first(|&n| n % 97 == 0);
    assert_eq!(first, values.iter().position(|&n| n % 97 == 0));
    println!("median {}, squares {squares}, {table:?}", sorted[sorted.len() / 2]);
}

/// Numbers that are the same in every run.
fn numbers(n: usize) -> Vec<u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % 10_000
    };
    (0..n).map(next).collect()
}

/// Sorts by halves, which other threads may steal.
fn merge_sort(values: &mut [u64]) {
    if values.len() <= 16 {
        values.sort_unstable();
        return;
    }
    let (left, right) = values.split_at_mut(values.len() / 2);
    rayon::join(|| merge_sort(left), || merge_sort(right));
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    while let Some(next) = match (left.peek(), right.peek()) {
        (Some(l), Some(r)) if l <= r => left.next(),
        (Some(_), None) => left.next(),
        (_, _) => right.next(),
    } {
        merged.push(*next);
    }
    values.copy_from_slice(&merged);
}

/// How often each word occurs: a table per piece of work, merged in pairs.
fn count_words(lines: &[String]) -> Table<'_> {
    lines.par_iter().fold(Table::new, count).reduce(Table::new, merge)
}

fn merge<'a>(mut one: Table<'a>, other: Table<'a>) -> Table<'a> {
    other.into_iter().for_each(|(word, n)| *one.entry(word).or_insert(0) += n);
    one
}

fn count<'a>(mut table: Table<'a>, line: &'a String) -> Table<'a> {
    line.split(' ').for_each(|word| *table.entry(word).or_insert(0) += 1);
    table
}
