// What is wrong: the flusher takes the cache's lock and then the log's, the rotator the log's and
// then the cache's. Both are detached, and main returns when its own work is done, so nobody ever
// notices that they wait for each other.
// Hunt: benign
// Kind: deadlock
// Guilty: 4 lines

#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int n_cached = 3, n_logged;

static void *flush(void *argument)
{
    pthread_mutex_lock(&cache_lock); /* guilty */
    pthread_mutex_lock(&log_lock); /* guilty */
    n_logged += n_cached;
    n_cached = 0;
    pthread_mutex_unlock(&log_lock);
    pthread_mutex_unlock(&cache_lock);
    return argument;
}

static void *rotate(void *argument)
{
    pthread_mutex_lock(&log_lock); /* guilty */
    n_logged = 0;
    pthread_mutex_lock(&cache_lock); /* guilty */
    n_cached = 0;
    pthread_mutex_unlock(&cache_lock);
    pthread_mutex_unlock(&log_lock);
    return argument;
}

static int compute(void)
{
    int sum = 0;
    for (int i = 1; i <= 10; i++)
        sum += i;
    return sum;
}

int main(void)
{
    void *(*const jobs[2])(void *) = {flush, rotate};

    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, jobs[i], NULL);
        pthread_detach(thread);
    }
    usleep(50 * 1000);
    assert(compute() == 55);
    return 0;
}
