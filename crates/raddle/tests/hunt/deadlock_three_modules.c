// What is wrong: three modules of a database each lock their own state and then call the next:
// the cache calls the log, the log the index, the index the cache. Any two get along; all
// three at once wait for each other in a circle.
// Hunt: fails
// Kind: deadlock
// Guilty: 6 lines
// Shows: deadlock

#include <assert.h>
#include <pthread.h>

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER;
static int n_pages, n_records, n_keys;

static void log_record(void)
{
    pthread_mutex_lock(&log_lock); /* guilty */
    n_records++;
    pthread_mutex_unlock(&log_lock);
}

static void index_key(void)
{
    pthread_mutex_lock(&index_lock); /* guilty */
    n_keys++;
    pthread_mutex_unlock(&index_lock);
}

static void cache_page(void)
{
    pthread_mutex_lock(&cache_lock); /* guilty */
    n_pages++;
    pthread_mutex_unlock(&cache_lock);
}

static void *write_back(void *argument)
{
    pthread_mutex_lock(&cache_lock); /* guilty */
    n_pages--;
    log_record();
    pthread_mutex_unlock(&cache_lock);
    return argument;
}

static void *checkpoint(void *argument)
{
    pthread_mutex_lock(&log_lock); /* guilty */
    n_records = 0;
    index_key();
    pthread_mutex_unlock(&log_lock);
    return argument;
}

static void *rebalance(void *argument)
{
    pthread_mutex_lock(&index_lock); /* guilty */
    n_keys++;
    cache_page();
    pthread_mutex_unlock(&index_lock);
    return argument;
}

int main(void)
{
    void *(*const jobs[3])(void *) = {write_back, checkpoint, rebalance};
    pthread_t threads[3];

    cache_page();
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, jobs[i], NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert(n_pages == 1 && n_keys == 2);
    return 0;
}
