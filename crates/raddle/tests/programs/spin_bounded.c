// About: loops that only read one variable, and end: neither is a livelock.
// Covers: AtomicLoad, pthread_mutex_lock, sched_yield
// Outcome: exit 0
// Seeds: 5

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static atomic_int cancelled;
static int cells[64];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int is_done;

static void *work(void *unused)
{
    for (int i = 0; i < 200000 && !atomic_load(&cancelled); i++)
        cells[i % 64]++;
    pthread_mutex_lock(&mutex);
    is_done = 1;
    pthread_mutex_unlock(&mutex);
    return unused;
}

int main(void)
{
    long sum = 0;
    for (int i = 0; i < 1000000; i++)
        sum += atomic_load(&cancelled);
    pthread_t thread;
    assert(pthread_create(&thread, NULL, work, NULL) == 0);
    // It lets others go first only while it holds the mutex.
    for (int seen = 0; !seen;) {
        pthread_mutex_lock(&mutex);
        seen = is_done;
        sched_yield();
        pthread_mutex_unlock(&mutex);
    }
    assert(pthread_join(thread, NULL) == 0 && sum == 0 && cells[0] == 3125);
    return 0;
}
