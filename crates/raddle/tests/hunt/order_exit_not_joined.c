// What is wrong: main starts two detached threads and returns. If it is slow to return, they run:
// one loads a table, the other reports what is in it, and nothing makes the report come second.
// Where main ends the process at once, neither thread runs, and they share nothing.
// Hunt: fails
// Kind: order
// Guilty: 2 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#define N_ROWS 8

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int rows[N_ROWS];
static const int *table;
static int n_reported;

static void *load(void *argument)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < N_ROWS; i++)
        rows[i] = i * i;
    table = rows; /* guilty */
    pthread_mutex_unlock(&lock);
    return argument;
}

static void *report(void *argument)
{
    pthread_mutex_lock(&lock);
    const int *from = table; /* guilty */
    assert(from != NULL);
    for (int i = 0; i < N_ROWS; i++)
        n_reported += from[i] >= 0;
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    void *(*const starts[])(void *) = {load, report};
    pthread_attr_t detached;
    pthread_t thread;

    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < 2; i++)
        pthread_create(&thread, &detached, starts[i], NULL);
    return 0;
}
