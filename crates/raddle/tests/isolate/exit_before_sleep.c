// What is wrong: as in Mozilla's timer thread, the signal to exit is sent before the thread
// that is to get it has gone to sleep, which then sleeps for ever.
// Isolate: rr
// Cause: order
// Guilty: 2 lines

#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t exit_now = PTHREAD_COND_INITIALIZER;
static int n_timers = 3;

static void *run(void *argument)
{
    (void)argument;
    usleep(2000);
    pthread_mutex_lock(&lock);
    n_timers--;
    pthread_cond_wait(&exit_now, &lock); /* guilty */
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *shut_down(void *argument)
{
    (void)argument;
    usleep(1000);
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&exit_now); /* guilty */
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, run, NULL);
    pthread_create(&threads[1], NULL, shut_down, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
