// About: pthread_rwlock_rdlock, pthread_rwlock_wrlock, pthread_rwlock_unlock.
// Covers: pthread_rwlock_rdlock, pthread_rwlock_unlock, pthread_rwlock_wrlock
// Outcome: exit 0
//
// Readers meet inside, which a barrier proves; a writer is alone.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

enum { READERS = 3, WRITERS = 2, ROUNDS = 15 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t all_inside;
static atomic_int n_readers, n_writers;
static int left, right;

static void *read_pairs(void *argument)
{
    (void)argument;
    assert(pthread_rwlock_rdlock(&lock) == 0);
    pthread_barrier_wait(&all_inside);
    assert(pthread_rwlock_unlock(&lock) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        assert(pthread_rwlock_rdlock(&lock) == 0);
        n_readers++;
        assert(n_writers == 0);
        assert(left == right);
        n_readers--;
        assert(pthread_rwlock_unlock(&lock) == 0);
    }
    return NULL;
}

static void *write_pairs(void *argument)
{
    (void)argument;
    for (int i = 0; i < ROUNDS; i++) {
        assert(pthread_rwlock_wrlock(&lock) == 0);
        assert(n_writers++ == 0 && n_readers == 0);
        left++;
        right++;
        n_writers--;
        assert(pthread_rwlock_unlock(&lock) == 0);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[READERS + WRITERS];
    pthread_barrier_init(&all_inside, NULL, READERS);
    for (int i = 0; i < READERS + WRITERS; i++)
        pthread_create(&threads[i], NULL, i < READERS ? read_pairs : write_pairs, NULL);
    for (int i = 0; i < READERS + WRITERS; i++)
        pthread_join(threads[i], NULL);
    assert(left == WRITERS * ROUNDS && right == left);
    assert(pthread_rwlock_destroy(&lock) == 0);
    return 0;
}
