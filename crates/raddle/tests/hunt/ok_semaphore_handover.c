// Nothing is wrong: a buffer goes to and fro between two threads, handed over by semaphores;
// whoever has it uses it without a lock. A barrier separates two phases that use the same
// variables in different roles.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <semaphore.h>

#define N_ROUNDS 4

static sem_t empty, full;
static int buffer;
static pthread_barrier_t barrier;
static int parts[2];

static void *produce(void *argument)
{
    for (int i = 1; i <= N_ROUNDS; i++) {
        sem_wait(&empty);
        buffer = i;
        sem_post(&full);
    }
    parts[0] = 7;
    pthread_barrier_wait(&barrier);
    assert(parts[1] == 9);
    return argument;
}

static void *consume(void *argument)
{
    int sum = 0;
    for (int i = 1; i <= N_ROUNDS; i++) {
        sem_wait(&full);
        sum += buffer;
        buffer = 0;
        sem_post(&empty);
    }
    assert(sum == N_ROUNDS * (N_ROUNDS + 1) / 2);
    parts[1] = 9;
    pthread_barrier_wait(&barrier);
    assert(parts[0] == 7);
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    sem_init(&empty, 0, 1);
    sem_init(&full, 0, 0);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&threads[0], NULL, produce, NULL);
    pthread_create(&threads[1], NULL, consume, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(buffer == 0);
    return 0;
}
