// What is wrong: the price of an article and the currency it is in are behind a mutex each. A
// reader that locks one after the other may see the new price in the old currency.
// Hunt: fails
// Kind: multi-variable
// Guilty: 4 lines
// Shows: assert

use std::sync::{Arc, Mutex};
use std::thread;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Currency {
    Crowns,
    Shillings,
}

struct Article {
    price: Mutex<u32>,
    currency: Mutex<Currency>,
    n_reads: Mutex<u32>,
}

impl Article {
    fn convert(&self) {
        let price = *self.price.lock().unwrap();
        *self.price.lock().unwrap() = price * 5; // guilty
        *self.currency.lock().unwrap() = Currency::Shillings; // guilty
    }

    fn read(&self) -> (u32, Currency) {
        *self.n_reads.lock().unwrap() += 1;
        let price = *self.price.lock().unwrap(); // guilty
        let currency = *self.currency.lock().unwrap(); // guilty
        (price, currency)
    }
}

fn main() {
    let article = Arc::new(Article {
        price: Mutex::new(20),
        currency: Mutex::new(Currency::Crowns),
        n_reads: Mutex::new(0),
    });
    let customers: Vec<_> = (0..2)
        .map(|_| {
            let article = Arc::clone(&article);
            thread::spawn(move || {
                let seen = article.read();
                assert!(seen == (20, Currency::Crowns) || seen == (100, Currency::Shillings));
            })
        })
        .collect();
    let clerk = {
        let article = Arc::clone(&article);
        thread::spawn(move || article.convert())
    };
    for customer in customers {
        customer.join().unwrap();
    }
    clerk.join().unwrap();
    assert_eq!(*article.n_reads.lock().unwrap(), 2);
}
