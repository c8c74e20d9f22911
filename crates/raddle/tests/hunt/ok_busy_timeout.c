// Nothing is wrong: whoever finds the database busy waits for it for up to 20 seconds, in steps
// that grow, and its holder has it for microseconds. That the holder may be preempted does not
// mean that it stands still for 20 seconds.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

enum { WRITERS = 3, TIMEOUT_MS = 20 * 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t database = PTHREAD_MUTEX_INITIALIZER;
static int n_rows;
static int n_failed;

static bool acquire(void)
{
    int waited_ms = 0;

    for (int step_ms = 1; waited_ms < TIMEOUT_MS; step_ms *= 2) {
        if (pthread_mutex_trylock(&database) == 0)
            return true;
        usleep(step_ms * 1000);
        waited_ms += step_ms;
    }
    return false;
}

static bool acquire_timed(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TIMEOUT_MS / 1000;
    return pthread_mutex_timedlock(&database, &until) == 0;
}

static void *insert(void *argument)
{
    bool is_timed = argument != NULL;

    if (is_timed ? acquire_timed() : acquire()) {
        n_rows++;
        pthread_mutex_unlock(&database);
    } else {
        pthread_mutex_lock(&lock);
        n_failed++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t writers[WRITERS];

    for (int i = 0; i < WRITERS; i++)
        pthread_create(&writers[i], NULL, insert, i == 0 ? &lock : NULL);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    assert(n_failed == 0);
    assert(n_rows == WRITERS);
    return 0;
}
