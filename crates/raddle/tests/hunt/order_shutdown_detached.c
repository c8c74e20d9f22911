// What is wrong: the server tells its detached workers to stop, waits until none of them *has a
// job*, and tears the tables down. A worker that has just taken a job off the queue, but has
// not yet counted itself as busy, uses tables that are gone.
// Hunt: fails
// Kind: order, atomicity, multi-variable
// Guilty: 5 lines
// Shows: signal

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define N_WORKERS 2
#define N_JOBS 3

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int n_queued = N_JOBS;
static int n_busy;
static int n_exited;
static int *volatile table;

static int take_job(void)
{
    int got = 0;

    pthread_mutex_lock(&lock);
    if (n_queued > 0) {
        n_queued--; /* guilty */
        got = 1;
    }
    pthread_mutex_unlock(&lock);
    return got;
}

static void set_busy(int by)
{
    pthread_mutex_lock(&lock);
    n_busy += by; /* guilty */
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void *work(void *argument)
{
    int own = *(const int *)argument;

    while (take_job()) {
        set_busy(1);
        int *place = table; /* guilty */
        place[own]++;
        set_busy(-1);
    }
    pthread_mutex_lock(&lock);
    n_exited++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static int shut_down(void)
{
    pthread_mutex_lock(&lock);
    while (n_queued > 0 || n_busy > 0) /* guilty */
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);

    int *old = table;
    table = NULL; /* guilty */
    return old[0] + old[1];
}

int main(void)
{
    static const int numbers[N_WORKERS] = {0, 1};
    static int cells[N_WORKERS];
    pthread_attr_t detached;
    pthread_t worker;

    table = cells;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < N_WORKERS; i++)
        pthread_create(&worker, &detached, work, (void *)&numbers[i]);
    int n_done = shut_down();
    printf("%d jobs done\n", n_done);

    pthread_mutex_lock(&lock);
    while (n_exited < N_WORKERS)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return n_done == N_JOBS ? 0 : 1;
}
