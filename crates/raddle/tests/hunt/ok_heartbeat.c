// Nothing is wrong: a worker beats, and a monitor waits for each beat with a time limit of 30
// seconds. A limit that expires is counted, and none does.
// Hunt: clean

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

enum { BEATS = 5, LIMIT_S = 30 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t beaten;
static int n_beats;
static bool is_done;

static void *work(void *argument)
{
    for (int i = 0; i < BEATS; i++) {
        usleep(100 * 1000);
        pthread_mutex_lock(&lock);
        n_beats++;
        pthread_cond_signal(&beaten);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    is_done = true;
    pthread_cond_signal(&beaten);
    pthread_mutex_unlock(&lock);
    return argument;
}

static void *monitor(void *argument)
{
    int *n_missed = argument;
    int n_seen = 0;

    pthread_mutex_lock(&lock);
    while (!is_done) {
        struct timespec until;
        int status = 0;

        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += LIMIT_S;
        while (n_beats == n_seen && !is_done && status != ETIMEDOUT)
            status = pthread_cond_timedwait(&beaten, &lock, &until);
        if (n_beats == n_seen && !is_done)
            (*n_missed)++;
        n_seen = n_beats;
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_condattr_t attributes;
    pthread_t threads[2];
    int n_missed = 0;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&beaten, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_create(&threads[0], NULL, work, NULL);
    pthread_create(&threads[1], NULL, monitor, &n_missed);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    pthread_cond_destroy(&beaten);
    assert(n_beats == BEATS);
    assert(n_missed == 0);
    return 0;
}
