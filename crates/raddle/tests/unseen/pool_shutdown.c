/*
 * Component: fixed-size thread pool. Main submits jobs, waits until they are
 * all finished and shuts the pool down.
 *
 * Bug (lost wake-up, cf. the many "set the stop flag without holding the lock"
 * fixes in thread pools and LevelDB/RocksDB background threads): pool_shutdown()
 * sets the flag and broadcasts without the pool mutex. A worker that has seen
 * stop == 0 (with the mutex) but is not waiting yet misses the broadcast and
 * then waits for ever; pthread_join() hangs.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define WORKERS 3
#define JOBS 8

struct job {
    void (*fn)(int);
    int arg;
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_cond_t idle;
    struct job job[JOBS];
    int head;
    int tail;
    int pending;
    atomic_int stop;
    pthread_t tid[WORKERS];
};

static struct pool pool = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .work = PTHREAD_COND_INITIALIZER,
    .idle = PTHREAD_COND_INITIALIZER,
};

static atomic_ulong checksum;
static atomic_int jobs_run;

static void hash_job(int seed)
{
    unsigned long h = (unsigned long)seed;
    for (int i = 0; i < 200; i++)
        h = h * 31 + (unsigned long)i;
    atomic_fetch_add(&checksum, h & 0xffff);
}

static void count_job(int n)
{
    atomic_fetch_add(&checksum, (unsigned long)n);
}

static int take_job(struct pool *p, struct job *out)
{
    pthread_mutex_lock(&p->lock);
    while (p->head == p->tail) {
        if (atomic_load(&p->stop)) { /* guilty */
            pthread_mutex_unlock(&p->lock);
            return 0;
        }
        pthread_cond_wait(&p->work, &p->lock); /* guilty */
    }
    *out = p->job[p->head];
    p->head++;
    pthread_mutex_unlock(&p->lock);
    return 1;
}

static void finish_job(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->pending--;
    if (p->pending == 0)
        pthread_cond_signal(&p->idle);
    pthread_mutex_unlock(&p->lock);
}

static void *worker_main(void *arg)
{
    struct pool *p = arg;
    struct job j;

    while (take_job(p, &j)) {
        j.fn(j.arg);
        atomic_fetch_add(&jobs_run, 1);
        finish_job(p);
    }
    return NULL;
}

static void pool_start(struct pool *p)
{
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&p->tid[i], NULL, worker_main, p);
}

static void pool_submit(struct pool *p, void (*fn)(int), int arg)
{
    pthread_mutex_lock(&p->lock);
    p->job[p->tail].fn = fn;
    p->job[p->tail].arg = arg;
    p->tail++;
    p->pending++;
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
}

static void pool_wait(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->pending > 0)
        pthread_cond_wait(&p->idle, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static void pool_shutdown(struct pool *p)
{
    atomic_store(&p->stop, 1); /* guilty */
    pthread_cond_broadcast(&p->work); /* guilty */
    for (int i = 0; i < WORKERS; i++)
        pthread_join(p->tid[i], NULL);
}

int main(void)
{
    pool_start(&pool);
    for (int i = 0; i < JOBS; i++)
        pool_submit(&pool, i % 2 ? hash_job : count_job, i);
    pool_wait(&pool);
    pool_shutdown(&pool);
    assert(atomic_load(&jobs_run) == JOBS);
    printf("%d jobs, checksum %lu\n", atomic_load(&jobs_run), atomic_load(&checksum));
    return 0;
}
