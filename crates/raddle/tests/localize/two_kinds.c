// What is wrong: two threads that should meet do not wait for each other. If the first is early, the
// program exits with a status; if the second is, an assertion fails: failures of two kinds, which
// are compared by themselves.

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static volatile int first_is_there;
static volatile int second_is_there;
static int first_alone;
static int second_alone;
static int counts[2][4];

static void work(int thread)
{
    for (int i = 0; i < 4; i++)
        counts[thread][i]++;
}

static void *first(void *argument)
{
    first_is_there = 1;
    work(0);
    first_alone = !second_is_there;
    return argument;
}

static void *second(void *argument)
{
    second_is_there = 1;
    work(1);
    second_alone = !first_is_there;
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(!second_alone);
    if (first_alone)
        exit(3);
    return 0;
}
