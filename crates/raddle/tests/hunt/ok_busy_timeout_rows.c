// Nothing is wrong: whoever finds the database busy asks again every 100 ms, for up to 5 seconds,
// and its holder needs less than a millisecond for its rows. The holder may be preempted, even for a second,
// but not anew before each row.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

enum { WRITERS = 2, ROWS = 1000, STEP_MS = 100, TIMEOUT_MS = 5 * 1000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t database = PTHREAD_MUTEX_INITIALIZER;
static int rows[WRITERS * ROWS];
static int n_rows;
static int n_failed;

static bool acquire(void)
{
    for (int waited_ms = 0; waited_ms < TIMEOUT_MS; waited_ms += STEP_MS) {
        if (pthread_mutex_trylock(&database) == 0)
            return true;
        usleep(STEP_MS * 1000);
    }
    return false;
}

static void *insert(void *unused)
{
    if (acquire()) {
        for (int i = 0; i < ROWS; i++) {
            pthread_mutex_lock(&lock);
            rows[n_rows++] = i;
            pthread_mutex_unlock(&lock);
        }
        pthread_mutex_unlock(&database);
    } else {
        pthread_mutex_lock(&lock);
        n_failed++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

int main(void)
{
    pthread_t writers[WRITERS];

    for (int i = 0; i < WRITERS; i++)
        pthread_create(&writers[i], NULL, insert, NULL);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    assert(n_failed == 0);
    assert(n_rows == WRITERS * ROWS);
    return 0;
}
