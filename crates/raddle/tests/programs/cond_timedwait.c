// About: pthread_cond_timedwait, pthread_cond_clockwait, pthread_condattr_setclock, ETIMEDOUT, EINVAL.
// Covers: pthread_cond_clockwait, pthread_cond_init, pthread_cond_timedwait
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t by_realtime = PTHREAD_COND_INITIALIZER;
static pthread_cond_t by_monotonic;

static struct timespec in_ms(clockid_t clock, long ms)
{
    struct timespec time;
    assert(clock_gettime(clock, &time) == 0);
    time.tv_nsec += ms % 1000 * 1000000;
    time.tv_sec += ms / 1000 + time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static int reached(clockid_t clock, struct timespec deadline)
{
    struct timespec now = in_ms(clock, 0);
    return now.tv_sec > deadline.tv_sec ||
           (now.tv_sec == deadline.tv_sec && now.tv_nsec >= deadline.tv_nsec);
}

int main(void)
{
    pthread_condattr_t attributes;
    clockid_t clock;
    assert(pthread_condattr_init(&attributes) == 0);
    assert(pthread_condattr_setclock(&attributes, CLOCK_PROCESS_CPUTIME_ID) == EINVAL);
    assert(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    assert(pthread_condattr_getclock(&attributes, &clock) == 0 && clock == CLOCK_MONOTONIC);
    assert(pthread_cond_init(&by_monotonic, &attributes) == 0);

    assert(pthread_mutex_lock(&lock) == 0);
    struct timespec deadline = in_ms(CLOCK_REALTIME, 250);
    while (!reached(CLOCK_REALTIME, deadline)) {
        int result = pthread_cond_timedwait(&by_realtime, &lock, &deadline);
        assert(result == ETIMEDOUT || result == 0); // 0 if woken spuriously.
        assert(pthread_mutex_trylock(&lock) == EBUSY);
    }
    deadline = in_ms(CLOCK_MONOTONIC, 250);
    while (pthread_cond_timedwait(&by_monotonic, &lock, &deadline) != ETIMEDOUT) {
    }
    assert(reached(CLOCK_MONOTONIC, deadline));
    deadline = in_ms(CLOCK_MONOTONIC, 250);
    while (pthread_cond_clockwait(&by_realtime, &lock, CLOCK_MONOTONIC, &deadline) != ETIMEDOUT) {
    }
    assert(reached(CLOCK_MONOTONIC, deadline));

    deadline = (struct timespec){ .tv_sec = 1, .tv_nsec = 1000000000 };
    assert(pthread_cond_timedwait(&by_realtime, &lock, &deadline) == EINVAL);
    deadline.tv_nsec = 0;
    assert(pthread_cond_timedwait(&by_realtime, &lock, &deadline) == ETIMEDOUT);
    assert(pthread_cond_clockwait(&by_realtime, &lock, CLOCK_THREAD_CPUTIME_ID, &deadline) == EINVAL);
    assert(pthread_mutex_unlock(&lock) == 0);
    return 0;
}
