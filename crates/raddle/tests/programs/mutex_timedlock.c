// About: pthread_mutex_timedlock, pthread_mutex_clocklock, ETIMEDOUT, EINVAL.
// Covers: pthread_mutex_clocklock, pthread_mutex_timedlock
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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

static void *contender(void *argument)
{
    (void)argument;
    struct timespec deadline = in_ms(CLOCK_REALTIME, 300);
    assert(pthread_mutex_timedlock(&lock, &deadline) == ETIMEDOUT);
    assert(reached(CLOCK_REALTIME, deadline));

    deadline = in_ms(CLOCK_MONOTONIC, 300);
    assert(pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &deadline) == ETIMEDOUT);
    assert(reached(CLOCK_MONOTONIC, deadline));

    deadline.tv_sec = 1; // Long ago, whatever the clock.
    assert(pthread_mutex_timedlock(&lock, &deadline) == ETIMEDOUT);
    deadline.tv_nsec = 1000000000;
    assert(pthread_mutex_timedlock(&lock, &deadline) == EINVAL);
    assert(pthread_mutex_clocklock(&lock, CLOCK_PROCESS_CPUTIME_ID, &deadline) == EINVAL);
    return NULL;
}

static void *patient(void *argument)
{
    (void)argument;
    struct timespec deadline = in_ms(CLOCK_REALTIME, 100000);
    assert(pthread_mutex_timedlock(&lock, &deadline) == 0);
    assert(pthread_mutex_unlock(&lock) == 0);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    assert(pthread_mutex_lock(&lock) == 0);
    assert(pthread_create(&thread, NULL, contender, NULL) == 0);
    assert(pthread_join(thread, NULL) == 0);
    assert(pthread_create(&thread, NULL, patient, NULL) == 0);
    usleep(200000);
    assert(pthread_mutex_unlock(&lock) == 0);
    assert(pthread_join(thread, NULL) == 0);
    return 0;
}
