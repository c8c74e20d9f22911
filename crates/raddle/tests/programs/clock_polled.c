// About: threads that do nothing but read the clock for a minute, with and without sched_yield, beside one that spins.
// Covers: time, clock_gettime
// Outcome: exit 0
// Seeds: 3
// Free: no, it would take a minute.

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

static atomic_int is_over;

static void *burn(void *argument)
{
    while (!atomic_load_explicit(&is_over, memory_order_relaxed))
        ;
    return argument;
}

static void *poll_clock(void *argument)
{
    for (int yields = 0; yields < 2; yields++) {
        time_t start = time(NULL);
        while (time(NULL) - start < 30)
            if (yields)
                sched_yield();
    }
    return argument;
}

int main(void)
{
    pthread_t burner, poller;
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    pthread_create(&burner, NULL, burn, NULL);
    pthread_create(&poller, NULL, poll_clock, NULL);
    poll_clock(NULL);
    pthread_join(poller, NULL);
    atomic_store(&is_over, 1);
    pthread_join(burner, NULL);
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert(after.tv_sec - before.tv_sec >= 59);
    return 0;
}
