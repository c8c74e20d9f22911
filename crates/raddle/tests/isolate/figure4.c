// What is wrong: figure 4 of the paper. Lines 1 and 2 read and write `*x` without a lock, so a
// thread adds to a value that is not there any more. `*y` is computed from it, both are used
// as indexes, and both crash. Threads sleep where the paper's figure 5 has them interleave.
// Isolate: rr
// Cause: race
// Executions: 1 3 1 0
// Guilty: 2 lines

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

struct record {
    int data;
};

static volatile int shared_x = 1, shared_y;
static volatile int *x = &shared_x, *y = &shared_y;
static struct record **structs;
static pthread_mutex_t section = PTHREAD_MUTEX_INITIALIZER;
static sem_t done;

static int foo(int value)
{
    return value * 5;
}

static int foo2(int value)
{
    return value;
}

static void *run(void *argument)
{
    int number = (int)(long)argument;
    int a = foo(*x); /* guilty */
    usleep(number == 1 ? 2000 : 1000);
    *x = *x + a; /* guilty */
    usleep(number == 1 ? 0 : 3000);
    pthread_mutex_lock(&section);
    *y = foo2(*x);
    volatile int b = structs[*y]->data;
    pthread_mutex_unlock(&section);
    if (number == 1)
        sem_wait(&done);
    volatile int c = structs[*x]->data;
    (void)b;
    (void)c;
    if (number == 2)
        sem_post(&done);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    sem_init(&done, 0, 0);
    /* Correct: 1 + 5 = 6, then 6 + 30 = 36. The race gives 6 + 5 = 11. */
    structs = calloc(64, sizeof *structs);
    for (int i = 0; i < 64; i++)
        if (i == 6 || i == 36)
            structs[i] = calloc(1, sizeof **structs);
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, run, (void *)(i + 1));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
