// About: a reader that reads again while a writer waits, by default and with
// PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP.
// Covers: pthread_rwlock_destroy, pthread_rwlock_init, pthread_rwlock_rdlock,
// Covers: pthread_rwlock_unlock, pthread_rwlock_wrlock
// Outcome: exit 0 | deadlock
// Must: deadlock
//
// glibc prefers readers, so the first half always ends well. The second does not.
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>

static pthread_rwlock_t lock;
static int value;

static void *read_twice(void *argument)
{
    assert(pthread_rwlock_rdlock(&lock) == 0);
    int first = value;
    assert(pthread_rwlock_rdlock(&lock) == 0);
    assert(value == first);
    assert(pthread_rwlock_unlock(&lock) == 0);
    assert(pthread_rwlock_unlock(&lock) == 0);
    return argument;
}

static void *write_once(void *argument)
{
    assert(pthread_rwlock_wrlock(&lock) == 0);
    value++;
    assert(pthread_rwlock_unlock(&lock) == 0);
    return argument;
}

static void meet(int kind)
{
    pthread_rwlockattr_t attributes;
    assert(pthread_rwlockattr_init(&attributes) == 0);
    assert(pthread_rwlockattr_setkind_np(&attributes, kind) == 0);
    assert(pthread_rwlock_init(&lock, &attributes) == 0);
    pthread_t reader, writer;
    assert(pthread_create(&reader, NULL, read_twice, NULL) == 0);
    assert(pthread_create(&writer, NULL, write_once, NULL) == 0);
    assert(pthread_join(reader, NULL) == 0);
    assert(pthread_join(writer, NULL) == 0);
    assert(pthread_rwlock_destroy(&lock) == 0);
}

int main(void)
{
    meet(PTHREAD_RWLOCK_DEFAULT_NP);
    meet(PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    assert(value == 2);
    return 0;
}
