// About: a mutex by a pointer that is not yet set.
// Covers: pthread_mutex_lock, pthread_mutex_unlock
// Outcome: exit 0 | signal SIGSEGV | misuse
// Must: misuse
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t *volatile shared;

static void *first(void *argument)
{
    pthread_mutex_lock(shared);
    pthread_mutex_unlock(shared);
    return argument;
}

static void *second(void *argument)
{
    shared = &lock;
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    shared = NULL;
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
