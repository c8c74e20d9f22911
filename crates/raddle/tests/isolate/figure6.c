// What is wrong: figure 6 of the paper. The same program, but `*z` is wrong from the
// beginning, and `*x` is made from it; what is added to `*x` is 0, so the race on it, and the
// one on `*z`, change nothing.
// Isolate: rr
// Cause: statement
// Executions: 1 4 3 0
// Guilty: 1 line

#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

struct record {
    int data;
};

static volatile int shared_x, shared_y, shared_z;
static volatile int *x = &shared_x, *y = &shared_y, *z = &shared_z;
static struct record **structs;
static pthread_mutex_t section = PTHREAD_MUTEX_INITIALIZER;
static sem_t done;

static int foo(int value)
{
    return value - 22;
}

static int foo2(int value)
{
    return value;
}

static void *run(void *argument)
{
    int number = (int)(long)argument;
    *z = 11; /* guilty */
    *x = 2 * *z;
    int a = foo(*x);
    usleep(number == 1 ? 2000 : 1000);
    *x = *x + a;
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
    assert(*z == 3);
    if (number == 2)
        sem_post(&done);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    sem_init(&done, 0, 0);
    structs = calloc(64, sizeof *structs);
    structs[6] = calloc(1, sizeof **structs);
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, run, (void *)(i + 1));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
