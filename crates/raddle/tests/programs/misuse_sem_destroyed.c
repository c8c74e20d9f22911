// About: a semaphore that is posted after it was destroyed.
// Covers: sem_destroy, sem_init, sem_post, SemPost
// Outcome: exit 0 | misuse
// Must: misuse
#include <pthread.h>
#include <semaphore.h>

static sem_t items;

static void *first(void *argument)
{
    sem_post(&items);
    return argument;
}

static void *second(void *argument)
{
    sem_destroy(&items);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    sem_init(&items, 0, 0);
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
