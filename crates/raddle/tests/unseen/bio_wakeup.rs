// Component: background I/O service of an in-memory database. The server thread
// queues jobs (close, fsync, lazy free) for two background threads, which sleep
// on a semaphore when their queue is empty.
//
// Bug (lost wake-up, check-then-sleep as in Redis-style background queues): a
// background thread finds its queue empty, then announces that it is sleeping
// and waits. If the server pushes its last job between the check and the
// announcement, it sees `sleeping == false` and does not post the semaphore; the
// background thread sleeps for ever with a job in its queue and join() hangs.
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

const KINDS: usize = 2;
const JOBS: u64 = 5;

struct Semaphore {
    permits: Mutex<u32>,
    cond: Condvar,
}

impl Semaphore {
    fn wait(&self) {
        let mut p = self.permits.lock().unwrap();
        while *p == 0 {
            p = self.cond.wait(p).unwrap();
        }
        *p -= 1;
    }

    fn post(&self) {
        let mut p = self.permits.lock().unwrap();
        *p += 1;
        self.cond.notify_one();
    }
}

enum Job {
    CloseFile(u64),
    Fsync(u64),
    Quit,
}

struct BioQueue {
    jobs: Mutex<VecDeque<Job>>,
    sleeping: AtomicBool,
    wakeup: Semaphore,
    processed: AtomicUsize,
}

impl BioQueue {
    fn new() -> BioQueue {
        BioQueue {
            jobs: Mutex::new(VecDeque::new()),
            sleeping: AtomicBool::new(false),
            wakeup: Semaphore { permits: Mutex::new(0), cond: Condvar::new() },
            processed: AtomicUsize::new(0),
        }
    }

    fn submit(&self, job: Job) {
        self.jobs.lock().unwrap().push_back(job); // guilty
        let asleep = self.sleeping.swap(false, SeqCst); // guilty
        if asleep {
            self.wakeup.post(); // guilty
        }
    }

    fn next(&self) -> Job {
        loop {
            let job = self.jobs.lock().unwrap().pop_front(); // guilty
            if let Some(job) = job {
                return job;
            }
            self.sleeping.store(true, SeqCst); // guilty
            self.wakeup.wait(); // guilty
        }
    }
}

static BYTES_SYNCED: AtomicU64 = AtomicU64::new(0);
static FILES_CLOSED: AtomicU64 = AtomicU64::new(0);

fn bio_thread(q: &BioQueue) {
    loop {
        match q.next() {
            Job::CloseFile(fd) => {
                assert!(fd > 0);
                FILES_CLOSED.fetch_add(1, SeqCst);
            }
            Job::Fsync(bytes) => {
                BYTES_SYNCED.fetch_add(bytes, SeqCst);
            }
            Job::Quit => break,
        }
        q.processed.fetch_add(1, SeqCst);
    }
}

fn server(queues: &[Arc<BioQueue>]) {
    for i in 1..=JOBS {
        queues[0].submit(Job::CloseFile(i));
        queues[1].submit(Job::Fsync(i * 512));
    }
    for q in queues {
        q.submit(Job::Quit);
    }
}

fn main() {
    let queues: Vec<Arc<BioQueue>> = (0..KINDS).map(|_| Arc::new(BioQueue::new())).collect();
    let mut threads = Vec::new();
    for q in &queues {
        let q = Arc::clone(q);
        threads.push(thread::spawn(move || bio_thread(&q)));
    }
    server(&queues);
    for t in threads {
        t.join().unwrap();
    }
    assert_eq!(FILES_CLOSED.load(SeqCst), JOBS);
    assert_eq!(BYTES_SYNCED.load(SeqCst), 512 * JOBS * (JOBS + 1) / 2);
    for q in &queues {
        assert_eq!(q.processed.load(SeqCst), JOBS as usize);
    }
    println!("{} files closed, {} bytes synced", FILES_CLOSED.load(SeqCst), BYTES_SYNCED.load(SeqCst));
}
