// About: pthread_cond_timedwait in time and too late; which one, the schedule decides.
// Covers: pthread_cond_timedwait
// Outcome: exit 0 | exit 1
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
static int is_ready;

static void *prepare(void *argument)
{
    usleep(100000);
    pthread_mutex_lock(&lock);
    is_ready = 1;
    pthread_cond_signal(&ready);
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_nsec += 100000000;
    if (deadline.tv_nsec >= 1000000000) {
        deadline.tv_sec++;
        deadline.tv_nsec -= 1000000000;
    }
    pthread_t thread;
    pthread_create(&thread, NULL, prepare, NULL);

    pthread_mutex_lock(&lock);
    int result = 0;
    while (!is_ready && result == 0)
        result = pthread_cond_timedwait(&ready, &lock, &deadline);
    int in_time = is_ready;
    pthread_mutex_unlock(&lock);
    assert(result == 0 || result == ETIMEDOUT);
    assert(result == ETIMEDOUT || in_time);
    pthread_join(thread, NULL);
    return in_time ? 0 : 1;
}
