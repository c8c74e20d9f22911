// What is wrong: a reader that finds the table stale upgrades its read lock to a write lock,
// which waits until it is the only reader. Two readers that upgrade at once each wait for the
// other to let go of its read lock. No other reader may come in while one has come in and is not yet
// the only one: that is the unit which is broken, from the count that it adds to until the count is its own.
// Hunt: fails
// Kind: deadlock
// Guilty: 4 lines
// Shows: deadlock

#include <assert.h>
#include <pthread.h>

struct upgradable {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n_readers;
    int writing;
};

static struct upgradable guard = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
static int version;
static int table[8];

static void lock_shared(struct upgradable *guard)
{
    pthread_mutex_lock(&guard->lock);
    while (guard->writing)
        pthread_cond_wait(&guard->changed, &guard->lock);
    guard->n_readers++; /* guilty */
    pthread_mutex_unlock(&guard->lock);
}

static void unlock_shared(struct upgradable *guard)
{
    pthread_mutex_lock(&guard->lock);
    guard->n_readers--;
    pthread_cond_broadcast(&guard->changed);
    pthread_mutex_unlock(&guard->lock);
}

static void upgrade(struct upgradable *guard)
{
    pthread_mutex_lock(&guard->lock);
    while (guard->n_readers > 1 || guard->writing) /* guilty */
        pthread_cond_wait(&guard->changed, &guard->lock); /* guilty */
    guard->n_readers = 0; /* guilty */
    guard->writing = 1;
    pthread_mutex_unlock(&guard->lock);
}

static void unlock_exclusive(struct upgradable *guard)
{
    pthread_mutex_lock(&guard->lock);
    guard->writing = 0;
    pthread_cond_broadcast(&guard->changed);
    pthread_mutex_unlock(&guard->lock);
}

static void *look_up(void *argument)
{
    int wanted = *(const int *)argument;

    lock_shared(&guard);
    if (version < wanted) {
        upgrade(&guard);
        for (int i = 0; i < 8; i++)
            table[i] = wanted * i;
        version = wanted;
        unlock_exclusive(&guard);
    } else {
        assert(table[7] >= 7 * wanted);
        unlock_shared(&guard);
    }
    return NULL;
}

int main(void)
{
    static const int wanted[3] = {1, 2, 1};
    pthread_t threads[3];

    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, look_up, (void *)&wanted[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert(version >= 1);
    return 0;
}
