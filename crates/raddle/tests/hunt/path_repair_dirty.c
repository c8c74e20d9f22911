// What is wrong: an index is marked dirty while it is changed. A reader who finds it dirty
// takes that for the trace of a crash and repairs it, by dropping what was not committed,
// although the writer is only in the middle of it. A run in which nobody looks at that
// moment never repairs anything.
// Hunt: fails
// Kind: atomicity, multi-variable
// Guilty: 4 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>
#include <string.h>

#define N_KEYS_MAX 16

struct index {
    pthread_mutex_t lock;
    int dirty;
    int n_keys;
    int n_committed;
    int keys[N_KEYS_MAX];
    int n_repairs;
};

static struct index index_ = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void begin(struct index *index)
{
    pthread_mutex_lock(&index->lock);
    index->dirty = 1; /* guilty */
    pthread_mutex_unlock(&index->lock);
}

static void insert(struct index *index, int key)
{
    pthread_mutex_lock(&index->lock);
    index->keys[index->n_keys++] = key;
    pthread_mutex_unlock(&index->lock);
}

static void commit(struct index *index)
{
    pthread_mutex_lock(&index->lock);
    index->n_committed = index->n_keys;
    index->dirty = 0; /* guilty */
    pthread_mutex_unlock(&index->lock);
}

static void repair(struct index *index)
{
    index->n_repairs++;
    for (int i = index->n_committed; i < index->n_keys; i++)
        index->keys[i] = 0;
    index->n_keys = index->n_committed; /* guilty */
}

static int count(struct index *index)
{
    pthread_mutex_lock(&index->lock);
    if (index->dirty) /* guilty */
        repair(index);
    int n = index->n_committed;
    pthread_mutex_unlock(&index->lock);
    return n;
}

static void *writer(void *argument)
{
    for (int batch = 0; batch < 2; batch++) {
        begin(&index_);
        insert(&index_, 2 * batch + 1);
        insert(&index_, 2 * batch + 2);
        commit(&index_);
    }
    return argument;
}

static void *reader(void *argument)
{
    int n = count(&index_);
    assert(n <= 4);
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, writer, NULL);
    pthread_create(&threads[1], NULL, reader, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(index_.n_keys == 4 && index_.n_committed == 4);
    return 0;
}
