// About: a reader-writer lock that is released by whoever does not have it.
// Covers: pthread_rwlock_trywrlock, pthread_rwlock_unlock, pthread_rwlock_wrlock
// Outcome: exit 0 | misuse
// Must: misuse
// Free: no, glibc counts readers below zero.
#include <pthread.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void *first(void *argument)
{
    pthread_rwlock_wrlock(&lock);
    pthread_rwlock_unlock(&lock);
    return argument;
}

static void *second(void *argument)
{
    if (pthread_rwlock_trywrlock(&lock) == 0)
        pthread_rwlock_unlock(&lock);
    pthread_rwlock_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    (void)lock;
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
