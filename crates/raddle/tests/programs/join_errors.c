// About: pthread_join, pthread_tryjoin_np, pthread_timedjoin_np, pthread_clockjoin_np, pthread_detach.
// Covers: pthread_clockjoin_np, pthread_detach, pthread_join, pthread_timedjoin_np,
// Covers: pthread_tryjoin_np, Detach
// Outcome: exit 0
//
// EDEADLK for oneself, EINVAL for the detached, EBUSY and ETIMEDOUT for those who still run.
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *passes(void *argument)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return argument;
}

int main(void)
{
    int value;
    void *result = NULL;
    pthread_t thread, loner;
    assert(pthread_join(pthread_self(), NULL) == EDEADLK);

    assert(pthread_mutex_lock(&gate) == 0);
    assert(pthread_create(&thread, NULL, passes, &value) == 0);
    assert(pthread_create(&loner, NULL, passes, NULL) == 0);
    assert(pthread_detach(loner) == 0);
    assert(pthread_detach(loner) == EINVAL);
    assert(pthread_join(loner, NULL) == EINVAL);

    assert(pthread_tryjoin_np(thread, &result) == EBUSY);
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += 1;
    assert(pthread_timedjoin_np(thread, &result, &deadline) == ETIMEDOUT);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    assert(now.tv_sec >= deadline.tv_sec);
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += 1;
    assert(pthread_clockjoin_np(thread, &result, CLOCK_MONOTONIC, &deadline) == ETIMEDOUT);

    assert(pthread_mutex_unlock(&gate) == 0);
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += 1000;
    assert(pthread_timedjoin_np(thread, &result, &deadline) == 0);
    assert(result == &value);
    return 0;
}
