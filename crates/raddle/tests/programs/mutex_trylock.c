// About: pthread_mutex_trylock under contention.
// Covers: pthread_mutex_trylock
// Outcome: exit 0
//
// Whoever fails to get the lock counts that instead; nothing is counted twice or dropped.
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 3, ROUNDS = 60 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_got;
static atomic_int n_busy;

static void *work(void *argument)
{
    (void)argument;
    for (int i = 0; i < ROUNDS; i++) {
        int result = pthread_mutex_trylock(&lock);
        if (result == 0) {
            int before = n_got;
            n_got = before + 1;
            assert(pthread_mutex_unlock(&lock) == 0);
        } else {
            assert(result == EBUSY);
            n_busy++;
        }
    }
    return NULL;
}

int main(void)
{
    // The owner of a normal mutex is refused like everybody else.
    assert(pthread_mutex_lock(&lock) == 0);
    assert(pthread_mutex_trylock(&lock) == EBUSY);
    assert(pthread_mutex_unlock(&lock) == 0);

    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_got > 0 && n_got + n_busy == THREADS * ROUNDS);
    return 0;
}
