// About: exit from a thread while the main thread waits; handlers of atexit and on_exit, which lock.
// Covers: atexit, exit
// Outcome: exit 5
//
// The handler needs a lock that a worker holds now and then; the worker goes on meanwhile.
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance, n_handlers;

static void runs_last(void)
{
    assert(n_handlers == 1);
}

static void runs_first(int status, void *argument)
{
    assert(status == 5 && argument == &lock);
    pthread_mutex_lock(&lock);
    assert(balance == 0);
    n_handlers++;
    pthread_mutex_unlock(&lock);
}

static void *work(void *argument)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        balance++;
        balance--;
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

static void *leave(void *argument)
{
    usleep(1000);
    exit(5);
    return argument;
}

int main(void)
{
    pthread_t worker, leaver;
    assert(atexit(runs_last) == 0);
    assert(on_exit(runs_first, &lock) == 0);
    pthread_create(&worker, NULL, work, NULL);
    pthread_create(&leaver, NULL, leave, NULL);
    pthread_join(leaver, NULL);
    pthread_join(worker, NULL);
    return 1;
}
