// About: a lock cycle of two threads beside one that goes on forever.
// Covers: pthread_mutex_lock, usleep, pthread_join
// Outcome: deadlock
// Must: deadlock
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t right = PTHREAD_MUTEX_INITIALIZER;
static volatile int n_beats;

static void both(pthread_mutex_t *first, pthread_mutex_t *second)
{
    pthread_mutex_lock(first);
    usleep(1000);
    pthread_mutex_lock(second);
    abort();
}

static void *from_left(void *argument)
{
    both(&left, &right);
    return argument;
}

static void *from_right(void *argument)
{
    both(&right, &left);
    return argument;
}

static void *beat(void *argument)
{
    for (;;) {
        for (int i = 0; i < 1000; i++)
            n_beats++;
        usleep(100);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, beat, NULL);
    pthread_create(&threads[1], NULL, from_left, NULL);
    pthread_create(&threads[2], NULL, from_right, NULL);
    pthread_join(threads[1], NULL);
    return 1;
}
