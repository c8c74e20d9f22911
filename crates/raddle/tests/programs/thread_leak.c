// About: threads that have ended when the program exits, and nobody joined or detached: the two of `forget`, and none
// of those that were joined or detached in one way or another, or that still run.
// Covers: pthread_create, pthread_detach, pthread_join, pthread_tryjoin_np, pthread_timedjoin_np
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

static sem_t never;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_ended;

static void *end(void *argument)
{
    pthread_mutex_lock(&lock);
    n_ended++;
    pthread_mutex_unlock(&lock);
    return argument;
}

static int n_ended_now(void)
{
    pthread_mutex_lock(&lock);
    int n = n_ended;
    pthread_mutex_unlock(&lock);
    return n;
}

static void *detach_itself(void *argument)
{
    assert(pthread_detach(pthread_self()) == 0);
    return end(argument);
}

static void *stay(void *argument)
{
    sem_wait(&never);
    return argument;
}

static void forget(void)
{
    pthread_t thread;
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&thread, NULL, end, NULL) == 0);
}

int main(void)
{
    pthread_t joined, tried, timed, detached, stays;
    pthread_attr_t attributes;
    struct timespec later;
    assert(sem_init(&never, 0, 0) == 0 && pthread_attr_init(&attributes) == 0);
    assert(pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0);
    forget();
    assert(pthread_create(&joined, NULL, end, NULL) == 0 && pthread_create(&tried, NULL, end, NULL) == 0);
    assert(pthread_create(&timed, NULL, end, NULL) == 0 && pthread_create(&detached, &attributes, end, NULL) == 0);
    assert(pthread_create(&detached, NULL, detach_itself, NULL) == 0);
    assert(pthread_create(&detached, NULL, end, NULL) == 0 && pthread_detach(detached) == 0);
    assert(pthread_create(&stays, NULL, stay, NULL) == 0);
    assert(pthread_join(joined, NULL) == 0 && clock_gettime(CLOCK_REALTIME, &later) == 0);
    later.tv_sec += 1000;
    assert(pthread_timedjoin_np(timed, NULL, &later) == 0);
    while (n_ended_now() < 8)
        usleep(1000);
    while (pthread_tryjoin_np(tried, NULL) != 0)
        usleep(1000);
    // What they have left to do is up to libc.
    sleep(1);
    return 0;
}
