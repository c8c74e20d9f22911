// What is wrong: a cache that is full evicts an entry and tells its owner by a callback, while
// it holds its lock. The owner's callback asks the cache for its size, which takes the same
// lock. The cache is full only if three users have an entry at the same time.
// Hunt: fails
// Kind: deadlock, failure
// Guilty: 2 lines
// Shows: deadlock, misuse

#include <assert.h>
#include <pthread.h>

#define CAPACITY 2
#define N_USERS 3

struct cache;
typedef void on_evicted(struct cache *cache, int key);

struct cache {
    pthread_mutex_t lock;
    int keys[CAPACITY];
    int n_keys;
    int size_when_evicted;
    on_evicted *evicted;
};

static int cache_size(struct cache *cache)
{
    pthread_mutex_lock(&cache->lock); /* guilty */
    int size = cache->n_keys;
    pthread_mutex_unlock(&cache->lock);
    return size;
}

static void note_eviction(struct cache *cache, int key)
{
    (void)key;
    cache->size_when_evicted = cache_size(cache);
}

static struct cache cache = {.lock = PTHREAD_MUTEX_INITIALIZER, .evicted = note_eviction};

static void cache_insert(struct cache *cache, int key)
{
    pthread_mutex_lock(&cache->lock); /* guilty */
    if (cache->n_keys == CAPACITY) {
        cache->evicted(cache, cache->keys[0]);
        cache->keys[0] = cache->keys[--cache->n_keys];
    }
    cache->keys[cache->n_keys++] = key;
    pthread_mutex_unlock(&cache->lock);
}

static void cache_remove(struct cache *cache, int key)
{
    pthread_mutex_lock(&cache->lock);
    for (int i = 0; i < cache->n_keys; i++)
        if (cache->keys[i] == key) {
            cache->keys[i] = cache->keys[--cache->n_keys];
            break;
        }
    pthread_mutex_unlock(&cache->lock);
}

static void *user(void *argument)
{
    int key = *(const int *)argument;
    cache_insert(&cache, key);
    cache_remove(&cache, key);
    return NULL;
}

int main(void)
{
    static const int keys[N_USERS] = {11, 22, 33};
    pthread_t users[N_USERS];

    for (int i = 0; i < N_USERS; i++)
        pthread_create(&users[i], NULL, user, (void *)&keys[i]);
    for (int i = 0; i < N_USERS; i++)
        pthread_join(users[i], NULL);
    assert(cache_size(&cache) == 0);
    return 0;
}
