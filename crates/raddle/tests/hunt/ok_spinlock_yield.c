// Nothing is wrong: a test-and-test-and-set lock of atomics that yields while it is taken. Its
// holder yields too, in the middle of its critical section.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { THREADS = 4, ROUNDS = 5 };

struct spinlock {
    atomic_bool taken;
};

static struct spinlock lock;
static int left = 1000, right;

static void spin_lock(struct spinlock *lock)
{
    for (;;) {
        if (!atomic_exchange_explicit(&lock->taken, true, memory_order_acquire))
            return;
        while (atomic_load_explicit(&lock->taken, memory_order_relaxed))
            sched_yield();
    }
}

static bool spin_trylock(struct spinlock *lock)
{
    return !atomic_exchange_explicit(&lock->taken, true, memory_order_acquire);
}

static void spin_unlock(struct spinlock *lock)
{
    atomic_store_explicit(&lock->taken, false, memory_order_release);
}

static void *move(void *argument)
{
    int amount = *(int *)argument;

    for (int i = 0; i < ROUNDS; i++) {
        if (i % 2 == 0) {
            spin_lock(&lock);
        } else {
            while (!spin_trylock(&lock))
                sched_yield();
        }
        left -= amount;
        sched_yield();
        right += amount;
        spin_unlock(&lock);
        sched_yield();
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int amounts[THREADS];

    for (int i = 0; i < THREADS; i++) {
        amounts[i] = i + 1;
        pthread_create(&threads[i], NULL, move, &amounts[i]);
    }
    for (int i = 0; i < 10; i++) {
        spin_lock(&lock);
        assert(left + right == 1000);
        spin_unlock(&lock);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(right == ROUNDS * (1 + 2 + 3 + 4));
    return 0;
}
