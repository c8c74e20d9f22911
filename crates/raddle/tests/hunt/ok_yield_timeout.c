// Nothing is wrong: main waits for up to a minute for threads that yield a few times before they are
// done, as channels and locks do before they block. A thread that yields lets others run, and does
// not stand still for a minute.
// Hunt: clean

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS = 2, ROUNDS = 4, YIELDS = 5, TIMEOUT_S = 60 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int n_done;

static void *work(void *argument)
{
    (void)argument;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < YIELDS; i++)
            sched_yield();
        pthread_mutex_lock(&lock);
        n_done++;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t workers[WORKERS];

    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, work, NULL);
    usleep(1000);
    pthread_mutex_lock(&lock);
    while (n_done < WORKERS * ROUNDS) {
        struct timespec until;

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += TIMEOUT_S;
        assert(pthread_cond_timedwait(&changed, &lock, &until) != ETIMEDOUT);
    }
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    return 0;
}
