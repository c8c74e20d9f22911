// About: timer_create with SIGEV_THREAD: each expiration runs its function in a new thread.
// Covers: timer_create, timer_delete, timer_settime
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ticked = PTHREAD_COND_INITIALIZER;
static int n_ticks;

static void tick(union sigval value)
{
    pthread_mutex_lock(&lock);
    n_ticks += value.sival_int;
    pthread_cond_signal(&ticked);
    pthread_mutex_unlock(&lock);
}

int main(void)
{
    timer_t timer;
    struct sigevent event = { .sigev_notify = SIGEV_THREAD, .sigev_value.sival_int = 1 };
    event.sigev_notify_function = tick;
    assert(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    const struct itimerspec often = { { .tv_nsec = 20000000 }, { .tv_nsec = 20000000 } };
    assert(timer_settime(timer, 0, &often, NULL) == 0);
    pthread_mutex_lock(&lock);
    while (n_ticks < 3)
        pthread_cond_wait(&ticked, &lock);
    pthread_mutex_unlock(&lock);
    assert(timer_delete(timer) == 0);
    return 0;
}
