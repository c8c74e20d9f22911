// Component: client-side connection pool with an upper limit of connections to
// one backend. Request threads acquire a connection, send a query and release
// it; when the limit is reached they answer from a stale cache instead.
//
// Bug (atomicity violation, as in many "max connections" checks): acquire()
// tests `active < LIMIT` and increments `active` in a second step. If another
// thread acquires between the test and the increment, both get a connection and
// the backend sees more connections than its limit. (Everything is atomic, there
// is no data race.)
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;

const LIMIT: usize = 2;
const THREADS: usize = 3;
const REQUESTS: u64 = 6;

struct Backend {
    open: AtomicUsize,
    queries: AtomicU64,
}

impl Backend {
    fn connect(&self) {
        let n = self.open.fetch_add(1, SeqCst) + 1;
        assert!(n <= LIMIT, "backend: too many connections ({n})");
    }

    fn query(&self, key: u64) -> u64 {
        self.queries.fetch_add(1, SeqCst);
        let mut x = key + 1;
        for _ in 0..20 {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        }
        x >> 33
    }

    fn disconnect(&self) {
        self.open.fetch_sub(1, SeqCst);
    }
}

struct Pool {
    backend: Backend,
    active: AtomicUsize,
    rejected: AtomicU64,
}

struct Connection<'a> {
    pool: &'a Pool,
}

impl Pool {
    fn new() -> Pool {
        Pool {
            backend: Backend { open: AtomicUsize::new(0), queries: AtomicU64::new(0) },
            active: AtomicUsize::new(0),
            rejected: AtomicU64::new(0),
        }
    }

    fn acquire(&self) -> Option<Connection<'_>> {
        let n = self.active.load(SeqCst); // guilty
        if n >= LIMIT {
            self.rejected.fetch_add(1, SeqCst);
            return None;
        }
        self.active.fetch_add(1, SeqCst); // guilty
        self.backend.connect();
        Some(Connection { pool: self })
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.pool.backend.disconnect();
        self.pool.active.fetch_sub(1, SeqCst);
    }
}

struct Service {
    pool: Pool,
    cache: Mutex<HashMap<u64, u64>>,
    stale: AtomicU64,
}

impl Service {
    fn handle(&self, key: u64) -> u64 {
        match self.pool.acquire() {
            Some(conn) => {
                let value = conn.pool.backend.query(key);
                drop(conn);
                self.cache.lock().unwrap().insert(key, value);
                value
            }
            None => {
                self.stale.fetch_add(1, SeqCst);
                let cache = self.cache.lock().unwrap();
                cache.get(&key).copied().unwrap_or(0)
            }
        }
    }
}

fn main() {
    let service = Arc::new(Service {
        pool: Pool::new(),
        cache: Mutex::new(HashMap::new()),
        stale: AtomicU64::new(0),
    });
    let mut threads = Vec::new();
    for t in 0..THREADS as u64 {
        let service = Arc::clone(&service);
        threads.push(thread::spawn(move || {
            let mut sum = 0u64;
            for i in 0..REQUESTS {
                sum = sum.wrapping_add(service.handle((t + i) % 5));
            }
            sum
        }));
    }
    for t in threads {
        t.join().unwrap();
    }
    let answered = service.pool.backend.queries.load(SeqCst) + service.stale.load(SeqCst);
    assert_eq!(answered, THREADS as u64 * REQUESTS);
    assert_eq!(service.stale.load(SeqCst), service.pool.rejected.load(SeqCst));
    println!("{answered} requests answered");
}
