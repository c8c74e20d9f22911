// About: two semaphores, used as locks and taken in opposite orders.
// Covers: sem_init, sem_post, sem_wait, SemWait
// Outcome: exit 0 | deadlock
// Must: deadlock
#include <pthread.h>
#include <semaphore.h>

static sem_t a, b;
static int count;

static void *forth(void *argument)
{
    for (int i = 0; i < 5; i++) {
        sem_wait(&a);
        sem_wait(&b);
        count++;
        sem_post(&b);
        sem_post(&a);
    }
    return argument;
}

static void *back(void *argument)
{
    for (int i = 0; i < 5; i++) {
        sem_wait(&b);
        sem_wait(&a);
        count++;
        sem_post(&a);
        sem_post(&b);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    sem_init(&a, 0, 1);
    sem_init(&b, 0, 1);
    pthread_create(&threads[0], NULL, forth, NULL);
    pthread_create(&threads[1], NULL, back, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return count != 10;
}
