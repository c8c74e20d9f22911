// About: a lock in inline assembly, which no instrumentation sees, spun on with `pause`, and one
// spun on with sched_yield.
// Covers: sched_yield
// Outcome: exit 0
// Seeds: 2
// External: the turn is taken away by the clock on the wall
#include <assert.h>
#include <pthread.h>
#include <sched.h>

enum { THREADS = 3, ROUNDS = 10 };

static int pausing_lock, yielding_lock;
static int pausing_count, yielding_count;

__attribute__((no_sanitize("thread"))) static inline int swap(int *word, int value)
{
    __asm__ volatile("xchgl %0, %1" : "+r"(value), "+m"(*word) : : "memory");
    return value;
}

static void *work(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        while (swap(&pausing_lock, 1))
            __asm__ volatile("pause");
        pausing_count++;
        swap(&pausing_lock, 0);

        while (swap(&yielding_lock, 1))
            sched_yield();
        yielding_count++;
        swap(&yielding_lock, 0);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(pausing_count == THREADS * ROUNDS && yielding_count == THREADS * ROUNDS);
    return 0;
}
