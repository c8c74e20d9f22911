// What is wrong: `cache_get` holds the cache's lock while it waits for a free buffer, and
// `cache_put`, which alone would free one, needs the cache's lock first. Waiting gives up
// only the inner lock. It goes well as long as a buffer is free.
// Hunt: fails
// Kind: deadlock
// Guilty: 3 lines
// Shows: deadlock

#include <assert.h>
#include <pthread.h>

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    int n_free;
};

struct cache {
    pthread_mutex_t lock;
    struct pool pool;
    int n_in_use;
    int n_served;
};

static struct cache cache = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 2},
};

static void pool_take(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    while (pool->n_free == 0)
        pthread_cond_wait(&pool->freed, &pool->lock); /* guilty */
    pool->n_free--;
    pthread_mutex_unlock(&pool->lock);
}

static void pool_give(struct pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    pool->n_free++;
    pthread_cond_signal(&pool->freed);
    pthread_mutex_unlock(&pool->lock);
}

static void cache_get(struct cache *cache)
{
    pthread_mutex_lock(&cache->lock); /* guilty */
    pool_take(&cache->pool);
    cache->n_in_use++;
    pthread_mutex_unlock(&cache->lock);
}

static void cache_put(struct cache *cache)
{
    pthread_mutex_lock(&cache->lock); /* guilty */
    cache->n_in_use--;
    cache->n_served++;
    pool_give(&cache->pool);
    pthread_mutex_unlock(&cache->lock);
}

static void *client(void *argument)
{
    cache_get(&cache);
    cache_put(&cache);
    return argument;
}

int main(void)
{
    pthread_t clients[3];

    for (int i = 0; i < 3; i++)
        pthread_create(&clients[i], NULL, client, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(clients[i], NULL);
    assert(cache.n_in_use == 0 && cache.n_served == 3 && cache.pool.n_free == 2);
    return 0;
}
