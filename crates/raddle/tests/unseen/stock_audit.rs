// Component: warehouse stock. Every article has a number of available and a
// number of reserved units, each kept in its own mutex-protected table. Order
// threads reserve and cancel units, an auditor checks the totals.
//
// Bug (multi-variable atomicity violation, as in bank transfer / audit races):
// reserve() takes units from `available` in one critical section and adds them
// to `reserved` in another one; audit() also reads the two tables in separate
// critical sections. An audit that falls between the two updates (or that is
// interrupted by them between its two reads) sees units missing or counted twice.
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;

const ARTICLES: usize = 3;
const UNITS: i64 = 20;
const AUDITS: usize = 3;

struct Warehouse {
    available: Mutex<[i64; ARTICLES]>,
    reserved: Mutex<[i64; ARTICLES]>,
    journal: Mutex<Vec<Entry>>,
    refused: AtomicUsize,
}

#[derive(Clone, Copy, Debug)]
enum Entry {
    Reserved(usize, i64),
    Refused(usize),
}

impl Warehouse {
    fn new() -> Warehouse {
        Warehouse {
            available: Mutex::new([UNITS; ARTICLES]),
            reserved: Mutex::new([0; ARTICLES]),
            journal: Mutex::new(Vec::new()),
            refused: AtomicUsize::new(0),
        }
    }

    fn reserve(&self, article: usize, n: i64) -> bool {
        let mut available = self.available.lock().unwrap();
        if available[article] < n {
            drop(available);
            self.refused.fetch_add(1, SeqCst);
            self.note(Entry::Refused(article));
            return false;
        }
        available[article] -= n; // guilty
        drop(available);

        let mut reserved = self.reserved.lock().unwrap();
        reserved[article] += n; // guilty
        drop(reserved);
        self.note(Entry::Reserved(article, n));
        true
    }

    fn note(&self, e: Entry) {
        self.journal.lock().unwrap().push(e);
    }

    fn audit(&self, article: usize) -> i64 {
        let available = self.available.lock().unwrap();
        let a = available[article]; // guilty
        drop(available);

        let reserved = self.reserved.lock().unwrap();
        let r = reserved[article]; // guilty
        drop(reserved);
        a + r
    }
}

fn order_thread(w: &Warehouse, first: usize) -> i64 {
    let mut ordered = 0;
    for i in 0..4 {
        let article = (first + i) % ARTICLES;
        let n = 2 + i as i64;
        if w.reserve(article, n) {
            ordered += n;
        }
    }
    ordered
}

fn audit_thread(w: &Warehouse) -> usize {
    let mut bad = 0;
    for _ in 0..AUDITS {
        for article in 0..ARTICLES {
            let total = w.audit(article);
            if total != UNITS {
                eprintln!("audit: article {article} has {total} units instead of {UNITS}");
                bad += 1;
            }
        }
    }
    bad
}

fn main() {
    let w = Arc::new(Warehouse::new());
    let auditor = {
        let w = Arc::clone(&w);
        thread::spawn(move || audit_thread(&w))
    };
    let mut orders = Vec::new();
    for first in 0..2 {
        let w = Arc::clone(&w);
        orders.push(thread::spawn(move || order_thread(&w, first)));
    }
    let bad = auditor.join().unwrap();
    let mut ordered = 0;
    for o in orders {
        ordered += o.join().unwrap();
    }
    let mut journalled = [0; ARTICLES];
    for e in w.journal.lock().unwrap().iter() {
        match e {
            Entry::Reserved(a, n) => journalled[*a] += n,
            Entry::Refused(a) => eprintln!("article {a} sold out"),
        }
    }
    assert_eq!(journalled, *w.reserved.lock().unwrap());
    assert_eq!(journalled.iter().sum::<i64>(), ordered);
    println!("{ordered} units reserved, {} refused", w.refused.load(SeqCst));
    if bad > 0 {
        std::process::exit(1);
    }
}
