/*
 * Component: in-memory object cache of a web server. Handlers look up an
 * object, serve it and drop their reference; an evictor removes objects from
 * the cache and drops the cache's own reference.
 *
 * Bug (double free, cf. Apache mod_mem_cache #21287): decrement_refcount()
 * decrements atomically, but then reads the counter again to decide whether
 * to free. If two threads decrement (2 -> 1 -> 0) before either of them reads,
 * both read 0 and both free the object.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define OBJECTS 3
#define HANDLERS 2
#define ROUNDS 2

enum slab_state { SLAB_FREE, SLAB_USED };

struct cache_object {
    int key;
    int size;
    atomic_int refcount;
    atomic_int state;
};

static struct cache_object slab[OBJECTS];

static struct {
    pthread_mutex_t lock;
    struct cache_object *entry[OBJECTS];
    int entries;
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER };

static atomic_int hits;
static atomic_int misses;
static atomic_long bytes_sent;
static atomic_int freed;

static struct cache_object *slab_alloc(int key, int size)
{
    struct cache_object *obj = &slab[key];
    obj->key = key;
    obj->size = size;
    atomic_store(&obj->refcount, 1);
    atomic_store(&obj->state, SLAB_USED);
    return obj;
}

static void slab_release(struct cache_object *obj)
{
    int old = atomic_exchange(&obj->state, SLAB_FREE);
    assert(old == SLAB_USED && "double free of cache object");
    atomic_fetch_add(&freed, 1);
}

static void decrement_refcount(struct cache_object *obj)
{
    atomic_fetch_sub(&obj->refcount, 1); /* guilty */
    if (atomic_load(&obj->refcount) == 0) /* guilty */
        slab_release(obj);
}

static void cache_insert(int key, int size)
{
    struct cache_object *obj = slab_alloc(key, size);
    pthread_mutex_lock(&cache.lock);
    cache.entry[key] = obj;
    cache.entries++;
    pthread_mutex_unlock(&cache.lock);
}

static struct cache_object *cache_lookup(int key)
{
    struct cache_object *obj;

    pthread_mutex_lock(&cache.lock);
    obj = cache.entry[key];
    if (obj != NULL)
        atomic_fetch_add(&obj->refcount, 1);
    pthread_mutex_unlock(&cache.lock);
    return obj;
}

static void cache_evict(int key)
{
    struct cache_object *obj;

    pthread_mutex_lock(&cache.lock);
    obj = cache.entry[key];
    cache.entry[key] = NULL;
    cache.entries--;
    pthread_mutex_unlock(&cache.lock);
    decrement_refcount(obj);
}

static void *handler_main(void *arg)
{
    int first = (int)(size_t)arg;
    for (int i = 0; i < ROUNDS * OBJECTS; i++) {
        struct cache_object *obj = cache_lookup((first + i) % OBJECTS);
        if (obj == NULL) {
            atomic_fetch_add(&misses, 1);
            continue;
        }
        atomic_fetch_add(&hits, 1);
        atomic_fetch_add(&bytes_sent, obj->size);
        decrement_refcount(obj);
    }
    return NULL;
}

static void *evictor_main(void *arg)
{
    (void)arg;
    for (int key = 0; key < OBJECTS; key++)
        cache_evict(key);
    return NULL;
}

int main(void)
{
    pthread_t handler[HANDLERS];
    pthread_t evictor;

    for (int key = 0; key < OBJECTS; key++)
        cache_insert(key, 100 * (key + 1));
    for (size_t i = 0; i < HANDLERS; i++)
        pthread_create(&handler[i], NULL, handler_main, (void *)i);
    pthread_create(&evictor, NULL, evictor_main, NULL);
    for (int i = 0; i < HANDLERS; i++)
        pthread_join(handler[i], NULL);
    pthread_join(evictor, NULL);

    assert(cache.entries == 0);
    assert(atomic_load(&freed) == OBJECTS);
    assert(atomic_load(&hits) + atomic_load(&misses) == HANDLERS * ROUNDS * OBJECTS);
    printf("hits %d misses %d\n", atomic_load(&hits), atomic_load(&misses));
    return 0;
}
