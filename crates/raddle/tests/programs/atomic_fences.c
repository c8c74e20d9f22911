// About: atomic_thread_fence, atomic_signal_fence: message passing, store buffering.
// Covers: __tsan_atomic_signal_fence, Read, Write, AtomicLoad, AtomicStore, Fence
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

enum { ROUNDS = 20 };

static int payload;
static atomic_int ready, x, y, saw_x, saw_y;

static void *send(void *argument)
{
    payload = 7;
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&ready, 1, memory_order_relaxed);
    return argument;
}

static void *receive(void *argument)
{
    while (!atomic_load_explicit(&ready, memory_order_relaxed)) {
    }
    atomic_thread_fence(memory_order_acquire);
    assert(payload == 7);
    return argument;
}

static void *left(void *argument)
{
    atomic_store_explicit(&x, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    saw_y = atomic_load_explicit(&y, memory_order_relaxed);
    return argument;
}

static void *right(void *argument)
{
    atomic_store_explicit(&y, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_thread_fence(memory_order_seq_cst);
    saw_x = atomic_load_explicit(&x, memory_order_relaxed);
    return argument;
}

static void pair(void *(*one)(void *), void *(*other)(void *))
{
    pthread_t threads[2];
    assert(pthread_create(&threads[0], NULL, one, NULL) == 0);
    assert(pthread_create(&threads[1], NULL, other, NULL) == 0);
    assert(pthread_join(threads[0], NULL) == 0 && pthread_join(threads[1], NULL) == 0);
}

int main(void)
{
    for (int i = 0; i < ROUNDS; i++) {
        payload = 0;
        ready = 0;
        x = 0;
        y = 0;
        pair(receive, send);
        pair(left, right);
        assert(saw_x || saw_y);
    }
    return 0;
}
