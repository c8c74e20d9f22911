// About: time-outs of seconds, an alarm, and a watchdog that sleeps, beside threads that work for some milliseconds.
// Covers: alarm, sem_timedwait, pthread_cond_timedwait, sleep
// Outcome: exit 0
// Seeds: 5

#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ITEMS = 300000 };

static sem_t done;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
static int n_finished;
static long sums[2][64];

static struct timespec after(int seconds)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec += seconds;
    return time;
}

static void *work(void *argument)
{
    long *sum = argument;
    for (long i = 0; i < ITEMS; i++)
        sum[i & 63] += i;
    sem_post(&done);
    for (long i = 0; i < ITEMS; i++)
        sum[i & 63] -= i;
    pthread_mutex_lock(&lock);
    n_finished++;
    pthread_cond_signal(&finished);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *watch(void *argument)
{
    sleep(30);
    abort();
    return argument;
}

int main(void)
{
    pthread_t workers[2], watchdog;
    alarm(30);
    sem_init(&done, 0, 0);
    pthread_create(&watchdog, NULL, watch, NULL);
    pthread_detach(watchdog);
    for (int i = 0; i < 2; i++)
        pthread_create(&workers[i], NULL, work, sums[i]);
    for (int i = 0; i < 2; i++) {
        struct timespec until = after(5);
        assert(sem_timedwait(&done, &until) == 0);
    }
    pthread_mutex_lock(&lock);
    struct timespec until = after(5);
    while (n_finished < 2)
        assert(pthread_cond_timedwait(&finished, &lock, &until) == 0);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < 2; i++)
        pthread_join(workers[i], NULL);
    for (int i = 0; i < 64; i++)
        assert(sums[0][i] == 0 && sums[1][i] == 0);
    return 0;
}
