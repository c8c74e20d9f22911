// About: exit under a lock that a handler of atexit needs.
// Covers: atexit, exit
// Outcome: deadlock
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_open = 1;

static void close_all(void)
{
    pthread_mutex_lock(&lock);
    n_open = 0;
    pthread_mutex_unlock(&lock);
}

static void *fail(void *argument)
{
    pthread_mutex_lock(&lock);
    if (n_open)
        exit(2);
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_t thread;
    atexit(close_all);
    pthread_create(&thread, NULL, fail, NULL);
    pthread_join(thread, NULL);
    return 0;
}
