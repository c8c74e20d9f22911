// What is wrong: `cache_find` gives out a pointer to an entry and lets go of the lock. Another
// thread may evict and free the entry while the pointer is in use. Evicted memory is
// overwritten first, as a careful program does, so the reader may see nonsense.
// Hunt: fails
// Kind: order, race, atomicity
// Guilty: 4 lines
// Shows: use-after-free, assert

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define N_SLOTS 2

struct entry {
    int key;
    int length;
    char text[24];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *slots[N_SLOTS];
static int n_evicted;

static struct entry *entry_new(int key)
{
    struct entry *entry = calloc(1, sizeof *entry);
    entry->key = key;
    entry->length = 4 + key;
    memset(entry->text, 'a' + key, entry->length);
    return entry;
}

static void entry_free(struct entry *entry)
{
    entry->length = -1; /* guilty */
    free(entry); /* guilty */
}

static struct entry *cache_find(int key)
{
    pthread_mutex_lock(&lock);
    struct entry *entry = slots[key % N_SLOTS];
    if (entry != NULL && entry->key != key)
        entry = NULL;
    pthread_mutex_unlock(&lock);
    return entry;
}

static void cache_insert(int key)
{
    pthread_mutex_lock(&lock);
    struct entry *old = slots[key % N_SLOTS];
    slots[key % N_SLOTS] = entry_new(key);
    if (old != NULL) {
        n_evicted++;
        entry_free(old);
    }
    pthread_mutex_unlock(&lock);
}

static void *read_entry(void *argument)
{
    int key = *(const int *)argument;
    struct entry *entry = cache_find(key);

    if (entry != NULL) {
        int length = entry->length; /* guilty */
        assert(length == 4 + key);
        for (int i = 0; i < length; i++)
            assert(entry->text[i] == 'a' + key); /* guilty */
    }
    return NULL;
}

static void *fill(void *argument)
{
    for (int key = 2; key < 5; key++)
        cache_insert(key);
    return argument;
}

int main(void)
{
    static const int keys[2] = {0, 1};
    pthread_t readers[2], writer;

    cache_insert(0);
    cache_insert(1);
    for (int i = 0; i < 2; i++)
        pthread_create(&readers[i], NULL, read_entry, (void *)&keys[i]);
    pthread_create(&writer, NULL, fill, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(readers[i], NULL);
    pthread_join(writer, NULL);
    assert(n_evicted == 3);
    for (int i = 0; i < N_SLOTS; i++)
        free(slots[i]);
    return 0;
}
