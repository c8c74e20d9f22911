// About: pthread_rwlock_try*, pthread_rwlock_timed*, pthread_rwlock_clock*: EBUSY, ETIMEDOUT, EDEADLK.
// Covers: pthread_rwlock_clockrdlock, pthread_rwlock_clockwrlock, pthread_rwlock_timedrdlock,
// Covers: pthread_rwlock_timedwrlock, pthread_rwlock_tryrdlock, pthread_rwlock_trywrlock
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

static pthread_rwlock_t lock;

static struct timespec soon(clockid_t clock)
{
    struct timespec time;
    assert(clock_gettime(clock, &time) == 0);
    time.tv_sec++;
    return time;
}

static void *against_a_reader(void *argument)
{
    (void)argument;
    assert(pthread_rwlock_trywrlock(&lock) == EBUSY);
    assert(pthread_rwlock_tryrdlock(&lock) == 0);
    assert(pthread_rwlock_unlock(&lock) == 0);
    struct timespec deadline = soon(CLOCK_REALTIME);
    assert(pthread_rwlock_timedwrlock(&lock, &deadline) == ETIMEDOUT);
    assert(pthread_rwlock_timedrdlock(&lock, &deadline) == 0);
    assert(pthread_rwlock_unlock(&lock) == 0);
    return NULL;
}

static void *against_a_writer(void *argument)
{
    (void)argument;
    assert(pthread_rwlock_trywrlock(&lock) == EBUSY);
    assert(pthread_rwlock_tryrdlock(&lock) == EBUSY);
    struct timespec deadline = soon(CLOCK_REALTIME);
    assert(pthread_rwlock_timedrdlock(&lock, &deadline) == ETIMEDOUT);
    deadline = soon(CLOCK_MONOTONIC);
    assert(pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &deadline) == ETIMEDOUT);
    assert(pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &deadline) == ETIMEDOUT);
    deadline.tv_nsec = -1;
    assert(pthread_rwlock_timedwrlock(&lock, &deadline) == EINVAL);
    return NULL;
}

static void run(void *(*start)(void *))
{
    pthread_t thread;
    assert(pthread_create(&thread, NULL, start, NULL) == 0);
    assert(pthread_join(thread, NULL) == 0);
}

int main(void)
{
    assert(pthread_rwlock_init(&lock, NULL) == 0);
    assert(pthread_rwlock_rdlock(&lock) == 0);
    assert(pthread_rwlock_rdlock(&lock) == 0);
    run(against_a_reader);
    assert(pthread_rwlock_unlock(&lock) == 0);
    run(against_a_reader);
    assert(pthread_rwlock_unlock(&lock) == 0);

    assert(pthread_rwlock_wrlock(&lock) == 0);
    assert(pthread_rwlock_wrlock(&lock) == EDEADLK);
    assert(pthread_rwlock_rdlock(&lock) == EDEADLK);
    run(against_a_writer);
    assert(pthread_rwlock_unlock(&lock) == 0);
    assert(pthread_rwlock_destroy(&lock) == 0);
    return 0;
}
