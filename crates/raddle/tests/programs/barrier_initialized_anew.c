// About: the serial thread of a barrier destroys and initializes it while others have yet to leave.
// Covers: pthread_barrier_init, pthread_barrier_destroy, pthread_barrier_wait
// Outcome: exit 0

#include <assert.h>
#include <pthread.h>

#define THREADS 4
#define ROUNDS 5

static pthread_barrier_t doors[2];
static int n_serial;

static void pass(pthread_barrier_t *door)
{
    if (pthread_barrier_wait(door) != PTHREAD_BARRIER_SERIAL_THREAD)
        return;
    __atomic_add_fetch(&n_serial, 1, __ATOMIC_RELAXED);
    // POSIX allows it: destroying waits for those who were woken and have not left.
    assert(pthread_barrier_destroy(door) == 0);
    assert(pthread_barrier_init(door, NULL, THREADS) == 0);
}

static void *walk(void *unused)
{
    for (int round = 0; round < ROUNDS; round++) {
        pass(&doors[0]);
        pass(&doors[1]);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < 2; i++)
        assert(pthread_barrier_init(&doors[i], NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, walk, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_serial == 2 * ROUNDS);
    return 0;
}
