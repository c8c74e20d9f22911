// What is wrong: the stock is an atomic, but is loaded, checked and stored in three steps. Two
// buyers who load the same number both get the last piece, and one of them is not counted.
// Hunt: fails
// Kind: atomicity
// Guilty: 2 lines
// Shows: assert

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

struct Shop {
    stock: AtomicU32,
    n_visits: AtomicU32,
}

impl Shop {
    fn buy(&self, wanted: u32) -> u32 {
        self.n_visits.fetch_add(1, Ordering::Relaxed);
        let stock = self.stock.load(Ordering::SeqCst); // guilty
        if stock < wanted {
            return 0;
        }
        self.stock.store(stock - wanted, Ordering::SeqCst); // guilty
        wanted
    }
}

fn main() {
    let shop = Arc::new(Shop { stock: AtomicU32::new(10), n_visits: AtomicU32::new(0) });
    let buyers: Vec<_> = (0..3)
        .map(|_| {
            let shop = Arc::clone(&shop);
            thread::spawn(move || shop.buy(3) + shop.buy(1))
        })
        .collect();
    let sold: u32 = buyers.into_iter().map(|buyer| buyer.join().unwrap()).sum();
    assert_eq!(shop.n_visits.load(Ordering::Relaxed), 6);
    assert_eq!(sold + shop.stock.load(Ordering::SeqCst), 10);
}
