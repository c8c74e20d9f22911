// What is wrong: as in MySQL, the log is closed and opened again under a lock, but whoever
// wants to write to it looks without the lock whether it is open, and may find it closed.
// Isolate: rr
// Cause: race
// Executions: 1 1 1 0
// Guilty: 2 lines

#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int is_open;
static int n_updates, n_logged;

static void *rotate(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&lock);
    is_open = 0; /* guilty */
    usleep(2000);
    is_open = 1;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *update(void *argument)
{
    (void)argument;
    usleep(1000);
    n_updates++;
    int open = is_open; /* guilty */
    assert(open);
    n_logged++;
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    pthread_mutex_lock(&lock);
    is_open = 1;
    pthread_mutex_unlock(&lock);
    pthread_create(&threads[0], NULL, rotate, NULL);
    pthread_create(&threads[1], NULL, update, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
