// About: the barrier of ThreadSanitizer's own tests: threads meet there, round by round.
// Covers: __tsan_testonly_barrier_init, __tsan_testonly_barrier_wait
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

// Weak, so that the program links without instrumentation as well.
__attribute__((weak)) void __tsan_testonly_barrier_init(unsigned long long *, unsigned);
__attribute__((weak)) void __tsan_testonly_barrier_wait(unsigned long long *);

enum { THREADS = 3, ROUNDS = 5 };
static unsigned long long barrier;
static atomic_int n_arrived;

static void *work(void *argument)
{
    for (int round = 1; round <= ROUNDS; round++) {
        n_arrived++;
        __tsan_testonly_barrier_wait(&barrier);
        assert(n_arrived >= round * THREADS);
    }
    return argument;
}

int main(void)
{
    if (__tsan_testonly_barrier_init == NULL)
        return 0;
    pthread_t threads[THREADS];
    __tsan_testonly_barrier_init(&barrier, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_arrived == THREADS * ROUNDS);
    return 0;
}
