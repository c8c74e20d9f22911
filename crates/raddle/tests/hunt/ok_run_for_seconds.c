// Nothing is wrong: workers run for two seconds by the clock, as a stress test does, and main
// watches their counters meanwhile.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 2, SECONDS = 2, BUCKETS = 64 };

struct worker {
    pthread_t thread;
    uint32_t state;
    unsigned long n_inserted;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long buckets[BUCKETS];
static unsigned long n_all;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static uint32_t next(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static void *stress(void *argument)
{
    struct worker *worker = argument;
    double end = now() + SECONDS;

    while (now() < end) {
        pthread_mutex_lock(&lock);
        buckets[next(&worker->state) % BUCKETS]++;
        n_all++;
        pthread_mutex_unlock(&lock);
        worker->n_inserted++;
        usleep(20 * 1000);
    }
    return NULL;
}

int main(void)
{
    struct worker workers[WORKERS];
    unsigned long n = 0, sum = 0;

    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){ .state = 2463534242u + (unsigned)i };
        pthread_create(&workers[i].thread, NULL, stress, &workers[i]);
    }
    for (double end = now() + SECONDS; now() < end;) {
        pthread_mutex_lock(&lock);
        assert(n_all >= n);
        n = n_all;
        pthread_mutex_unlock(&lock);
        usleep(500 * 1000);
    }
    n = 0;
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        n += workers[i].n_inserted;
    }
    for (int i = 0; i < BUCKETS; i++)
        sum += buckets[i];
    assert(n == n_all && sum == n_all);
    printf("inserted something in %d seconds\n", SECONDS);
    return 0;
}
