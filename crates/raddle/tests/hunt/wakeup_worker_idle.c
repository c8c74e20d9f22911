// What is wrong: a worker reads the number of pending jobs without the lock, decides to sleep,
// and only then locks and waits. A job that is queued in between is signalled to nobody, and
// the worker sleeps beside it.
// Hunt: fails
// Kind: atomicity, order, deadlock, failure
// Guilty: 4 lines
// Shows: lost-wakeup

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#define N_JOBS 2

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pending = PTHREAD_COND_INITIALIZER;
static _Atomic int n_pending;
static int n_done;

static void queue_job(void)
{
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&n_pending, 1); /* guilty */
    pthread_cond_signal(&pending); /* guilty */
    pthread_mutex_unlock(&lock);
}

static void wait_for_job(void)
{
    if (atomic_load(&n_pending) == 0) { /* guilty */
        pthread_mutex_lock(&lock);
        pthread_cond_wait(&pending, &lock); /* guilty */
        pthread_mutex_unlock(&lock);
    }
    atomic_fetch_sub(&n_pending, 1);
}

static void *client(void *argument)
{
    for (int i = 0; i < N_JOBS; i++)
        queue_job();
    return argument;
}

static void *work(void *argument)
{
    for (int i = 0; i < N_JOBS; i++) {
        wait_for_job();
        pthread_mutex_lock(&lock);
        n_done++;
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, client, NULL);
    pthread_create(&threads[1], NULL, work, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(n_done == N_JOBS && atomic_load(&n_pending) == 0);
    return 0;
}
