// About: a mutex that is locked after it was destroyed.
// Covers: exit, pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock,
// Covers: pthread_mutex_unlock
// Outcome: exit 0 | exit 1 | misuse
// Must: misuse
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock;
static int n;

static void *first(void *argument)
{
    if (pthread_mutex_lock(&lock) != 0)
        exit(1);
    n++;
    pthread_mutex_unlock(&lock);
    return argument;
}

static void *second(void *argument)
{
    pthread_mutex_destroy(&lock);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    pthread_mutex_init(&lock, NULL);
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
