// About: threads that wait with a time-out in a loop, and are always woken in time; each wait has a new deadline.
// Covers: pthread_cond_timedwait, pthread_cond_signal
// Outcome: exit 0
// Seeds: 5

#include <assert.h>
#include <pthread.h>
#include <time.h>

enum { CONSUMERS = 4, ITEMS = 3000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static int n_pending;

static void *consume(void *argument)
{
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&lock);
        while (n_pending == 0) {
            struct timespec until;
            clock_gettime(CLOCK_REALTIME, &until);
            until.tv_sec += 20;
            assert(pthread_cond_timedwait(&arrived, &lock, &until) == 0);
        }
        n_pending--;
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

int main(void)
{
    pthread_t consumers[CONSUMERS];
    for (int i = 0; i < CONSUMERS; i++)
        pthread_create(&consumers[i], NULL, consume, NULL);
    for (int i = 0; i < CONSUMERS * ITEMS; i++) {
        pthread_mutex_lock(&lock);
        n_pending++;
        pthread_cond_signal(&arrived);
        pthread_mutex_unlock(&lock);
    }
    for (int i = 0; i < CONSUMERS; i++)
        pthread_join(consumers[i], NULL);
    return 0;
}
