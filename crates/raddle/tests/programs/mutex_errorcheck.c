// About: error-checking mutexes: EDEADLK, EPERM, EBUSY; pthread_mutex_timedlock by the owner.
// Covers: pthread_mutex_timedlock
// Outcome: exit 0
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>

static pthread_mutex_t lock;

static void *outsider(void *argument)
{
    (void)argument;
    assert(pthread_mutex_unlock(&lock) == EPERM);
    assert(pthread_mutex_trylock(&lock) == EBUSY);
    return NULL;
}

static void *contender(void *argument)
{
    int *count = argument;
    for (int i = 0; i < 20; i++) {
        assert(pthread_mutex_lock(&lock) == 0);
        ++*count;
        assert(pthread_mutex_unlock(&lock) == 0);
    }
    return NULL;
}

int main(void)
{
    pthread_mutexattr_t attributes;
    int type;
    assert(pthread_mutexattr_init(&attributes) == 0);
    assert(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK) == 0);
    assert(pthread_mutexattr_gettype(&attributes, &type) == 0 && type == PTHREAD_MUTEX_ERRORCHECK);
    assert(pthread_mutexattr_settype(&attributes, 12345) == EINVAL);
    assert(pthread_mutex_init(&lock, &attributes) == 0);

    assert(pthread_mutex_unlock(&lock) == EPERM);
    assert(pthread_mutex_lock(&lock) == 0);
    assert(pthread_mutex_lock(&lock) == EDEADLK);
    assert(pthread_mutex_trylock(&lock) == EBUSY);
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += 5;
    assert(pthread_mutex_timedlock(&lock, &deadline) == EDEADLK);

    pthread_t thread, other;
    assert(pthread_create(&thread, NULL, outsider, NULL) == 0);
    assert(pthread_join(thread, NULL) == 0);
    assert(pthread_mutex_unlock(&lock) == 0);
    assert(pthread_mutex_unlock(&lock) == EPERM);

    int count = 0;
    assert(pthread_create(&thread, NULL, contender, &count) == 0);
    assert(pthread_create(&other, NULL, contender, &count) == 0);
    assert(pthread_join(thread, NULL) == 0);
    assert(pthread_join(other, NULL) == 0);
    assert(count == 40);
    assert(pthread_mutex_destroy(&lock) == 0);
    return 0;
}
