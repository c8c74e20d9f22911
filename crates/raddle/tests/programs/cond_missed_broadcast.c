// About: a predicate that is changed without the lock, so that a broadcast falls between
// a waiter's check and its wait.
// Covers: pthread_cond_broadcast, pthread_cond_wait
// Outcome: exit 0 | lost wake-up | deadlock
// Must: lost wake-up
//
// When the broadcast reaches some of them and misses others, both words are fair.
#include <pthread.h>
#include <stdatomic.h>

enum { WAITERS = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t stopped = PTHREAD_COND_INITIALIZER;
static atomic_int stop;

static void *serve(void *argument)
{
    pthread_mutex_lock(&lock);
    while (!stop)
        pthread_cond_wait(&stopped, &lock);
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_t threads[WAITERS];
    for (int i = 0; i < WAITERS; i++)
        pthread_create(&threads[i], NULL, serve, NULL);
    stop = 1;
    pthread_cond_broadcast(&stopped);
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
