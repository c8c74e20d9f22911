// What is wrong: after the property cache of Mozilla's JavaScript engine: an entry is a key
// and a value, each written and read under the lock, but the two not under one holding of it.
// A reader finds the new key with the old value.
// Hunt: fails
// Kind: multi-variable
// Guilty: 4 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>

#define N_ENTRIES 4

struct entry {
    unsigned key;
    unsigned value;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry cache[N_ENTRIES];
static unsigned n_hits, n_misses;

static unsigned compute(unsigned key)
{
    return key * key + 1;
}

static struct entry *entry_of(unsigned key)
{
    return &cache[key % N_ENTRIES];
}

static void fill(unsigned key)
{
    struct entry *entry = entry_of(key);

    pthread_mutex_lock(&lock);
    entry->key = key; /* guilty */
    pthread_mutex_unlock(&lock);

    unsigned value = compute(key);

    pthread_mutex_lock(&lock);
    entry->value = value; /* guilty */
    pthread_mutex_unlock(&lock);
}

static int test(unsigned key)
{
    pthread_mutex_lock(&lock);
    int hit = entry_of(key)->key == key; /* guilty */
    if (hit)
        n_hits++;
    else
        n_misses++;
    pthread_mutex_unlock(&lock);
    return hit;
}

static unsigned get(unsigned key)
{
    if (!test(key))
        fill(key);
    pthread_mutex_lock(&lock);
    unsigned value = entry_of(key)->value; /* guilty */
    pthread_mutex_unlock(&lock);
    return value;
}

static void *script(void *argument)
{
    const unsigned *keys = argument;
    for (int i = 0; i < 4; i++)
        assert(get(keys[i]) == compute(keys[i]));
    return NULL;
}

int main(void)
{
    /* 5 and 9 share a place with each other, the rest does not. */
    static const unsigned keys[2][4] = {{4, 5, 6, 5}, {7, 9, 4, 9}};
    pthread_t scripts[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&scripts[i], NULL, script, (void *)keys[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(scripts[i], NULL);
    assert(n_hits + n_misses == 8);
    return 0;
}
