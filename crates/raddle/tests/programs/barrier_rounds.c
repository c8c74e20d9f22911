// About: pthread_barrier_init, pthread_barrier_wait, PTHREAD_BARRIER_SERIAL_THREAD, reuse.
// Covers: pthread_barrier_destroy, pthread_barrier_init, pthread_barrier_wait
// Outcome: exit 0
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4, ROUNDS = 8 };

static pthread_barrier_t barrier;
static atomic_int n_serial[ROUNDS];
static int cells[2][THREADS];

static void *work(void *argument)
{
    int me = (int *)argument - cells[0];
    for (int round = 0; round < ROUNDS; round++) {
        int *now = cells[round % 2], *next = cells[(round + 1) % 2];
        next[me] = now[(me + 1) % THREADS] + 1;
        int result = pthread_barrier_wait(&barrier);
        if (result == PTHREAD_BARRIER_SERIAL_THREAD)
            n_serial[round]++;
        else
            assert(result == 0);
        for (int i = 0; i < THREADS; i++)
            assert(next[i] == round + 1);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    assert(pthread_barrier_init(&barrier, NULL, 0) == EINVAL);
    assert(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, work, &cells[0][i]) == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    for (int round = 0; round < ROUNDS; round++)
        assert(n_serial[round] == 1);
    assert(pthread_barrier_destroy(&barrier) == 0);

    // A barrier of one stops nobody.
    assert(pthread_barrier_init(&barrier, NULL, 1) == 0);
    assert(pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD);
    assert(pthread_barrier_destroy(&barrier) == 0);
    return 0;
}
