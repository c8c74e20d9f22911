// About: loops on C11 atomics: flag, ticket lock, test-and-set lock.
// Covers: Read, Write, AtomicLoad, AtomicStore, AtomicUpdate
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 3, ROUNDS = 10 };

static atomic_uint next_ticket, now_serving;
static atomic_flag taken = ATOMIC_FLAG_INIT;
static atomic_bool start;
static int by_ticket, by_flag;

static void *work(void *argument)
{
    while (!atomic_load_explicit(&start, memory_order_acquire)) {
    }
    for (int i = 0; i < ROUNDS; i++) {
        unsigned mine = atomic_fetch_add_explicit(&next_ticket, 1, memory_order_relaxed);
        while (atomic_load_explicit(&now_serving, memory_order_acquire) != mine) {
        }
        by_ticket++;
        atomic_fetch_add_explicit(&now_serving, 1, memory_order_release);

        while (atomic_flag_test_and_set_explicit(&taken, memory_order_acquire)) {
        }
        by_flag++;
        atomic_flag_clear_explicit(&taken, memory_order_release);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    atomic_store_explicit(&start, 1, memory_order_release);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(by_ticket == THREADS * ROUNDS && by_flag == THREADS * ROUNDS);
    return 0;
}
