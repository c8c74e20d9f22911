// Nothing is wrong: a relaxation in two grids, with one barrier used twice per round; then the
// barrier is destroyed by the thread that it chose, and initialized for fewer threads.
// Hunt: clean

#include <assert.h>
#include <pthread.h>

enum { THREADS = 3, CELLS = 6, ROUNDS = 4 };

static pthread_barrier_t barrier;
static int grids[2][CELLS + 2];
static int n_serial;

static void *relax(void *argument)
{
    int id = *(int *)argument;

    for (int round = 0; round < ROUNDS; round++) {
        int *from = grids[round % 2], *to = grids[1 - round % 2];
        for (int i = 1 + id; i <= CELLS; i += THREADS)
            to[i] = from[i - 1] + from[i + 1];
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
            n_serial++;
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void compute(int n_threads)
{
    pthread_t threads[THREADS];
    int ids[THREADS];

    pthread_barrier_init(&barrier, NULL, (unsigned)n_threads);
    for (int i = 0; i < n_threads; i++) {
        ids[i] = i;
        pthread_create(&threads[i], NULL, relax, &ids[i]);
    }
    for (int i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
    assert(pthread_barrier_destroy(&barrier) == 0);
}

int main(void)
{
    int expected[2][CELLS + 2] = { { 0 } };

    grids[0][3] = expected[0][3] = 1;
    compute(THREADS);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 1; i <= CELLS; i++)
            expected[1 - round % 2][i] = expected[round % 2][i - 1] + expected[round % 2][i + 1];
    for (int i = 1; i <= CELLS; i++)
        assert(grids[ROUNDS % 2][i] == expected[ROUNDS % 2][i]);
    assert(n_serial == ROUNDS);
    compute(1);
    assert(n_serial == 2 * ROUNDS);
    return 0;
}
