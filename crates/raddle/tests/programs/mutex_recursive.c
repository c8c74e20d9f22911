// About: recursive mutexes, EBUSY for others until the last unlock, EPERM for non-owners.
// Covers: pthread_mutex_trylock
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>

static pthread_mutex_t lock;
static pthread_mutex_t static_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static int depth_seen;

static void *outsider(void *argument)
{
    (void)argument;
    assert(pthread_mutex_trylock(&lock) == EBUSY);
    assert(pthread_mutex_unlock(&lock) == EPERM);
    return NULL;
}

static void *contender(void *argument)
{
    (void)argument;
    for (int i = 0; i < 20; i++) {
        assert(pthread_mutex_lock(&static_lock) == 0);
        assert(pthread_mutex_lock(&static_lock) == 0);
        assert(depth_seen == 0);
        depth_seen = 1;
        assert(pthread_mutex_unlock(&static_lock) == 0);
        depth_seen = 0;
        assert(pthread_mutex_unlock(&static_lock) == 0);
    }
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
    pthread_mutexattr_t attributes;
    assert(pthread_mutexattr_init(&attributes) == 0);
    assert(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE) == 0);
    assert(pthread_mutex_init(&lock, &attributes) == 0);
    assert(pthread_mutexattr_destroy(&attributes) == 0);

    assert(pthread_mutex_lock(&lock) == 0);
    assert(pthread_mutex_lock(&lock) == 0);
    assert(pthread_mutex_trylock(&lock) == 0);
    for (int depth = 3; depth > 0; depth--) {
        run(outsider);
        assert(pthread_mutex_unlock(&lock) == 0);
    }
    assert(pthread_mutex_unlock(&lock) == EPERM);

    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, contender, NULL) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(pthread_mutex_destroy(&lock) == 0);
    return 0;
}
