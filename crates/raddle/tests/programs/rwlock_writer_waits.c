// About: while a writer waits for a lock that prefers writers, no reader comes in, not even by
// About: pthread_rwlock_tryrdlock.
// Covers: pthread_rwlock_tryrdlock, pthread_rwlock_rdlock, pthread_rwlock_wrlock
// Outcome: exit 0
// Free: no, a sleep is no guarantee there that the writer waits.
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static pthread_rwlock_t by_readers = PTHREAD_RWLOCK_INITIALIZER;

static void *writes(void *argument)
{
    pthread_rwlock_wrlock(&lock);
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_wrlock(&by_readers);
    pthread_rwlock_unlock(&by_readers);
    return argument;
}

int main(void)
{
    pthread_t writer;
    pthread_rwlock_rdlock(&lock);
    pthread_rwlock_rdlock(&by_readers);
    pthread_create(&writer, NULL, writes, NULL);
    sleep(1);
    assert(pthread_rwlock_tryrdlock(&lock) == EBUSY);
    pthread_rwlock_unlock(&lock);
    sleep(1);
    assert(pthread_rwlock_tryrdlock(&lock) == 0);
    pthread_rwlock_unlock(&lock);
    assert(pthread_rwlock_tryrdlock(&by_readers) == 0);
    pthread_rwlock_unlock(&by_readers);
    pthread_rwlock_unlock(&by_readers);
    pthread_join(writer, NULL);
    return 0;
}
