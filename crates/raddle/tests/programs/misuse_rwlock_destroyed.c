// About: a reader-writer lock that is taken after it was destroyed.
// Covers: pthread_rwlock_destroy, pthread_rwlock_init, pthread_rwlock_rdlock,
// Covers: pthread_rwlock_unlock
// Outcome: exit 0 | misuse
// Must: misuse
#include <pthread.h>

static pthread_rwlock_t lock;
static int n;

static void *first(void *argument)
{
    pthread_rwlock_rdlock(&lock);
    n++;
    pthread_rwlock_unlock(&lock);
    return argument;
}

static void *second(void *argument)
{
    pthread_rwlock_destroy(&lock);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    pthread_rwlock_init(&lock, NULL);
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
