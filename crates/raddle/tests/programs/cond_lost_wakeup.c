// About: a signal that is sent before anybody waits, and no predicate that remembers it.
// Covers: pthread_cond_signal, pthread_cond_wait
// Outcome: exit 0 | lost wake-up
// Must: lost wake-up
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static int result;

static void *compute(void *argument)
{
    result = 42;
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&done);
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, compute, NULL);
    pthread_mutex_lock(&lock);
    pthread_cond_wait(&done, &lock);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
    return 0;
}
