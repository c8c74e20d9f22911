// About: atomics of 16 bytes: load, store, exchange, compare-exchange, fetch-and-op.
// Covers: __tsan_atomic128_compare_exchange_strong, __tsan_atomic128_compare_exchange_weak,
// Covers: __tsan_atomic128_exchange, __tsan_atomic128_fetch_add, __tsan_atomic128_fetch_and,
// Covers: __tsan_atomic128_fetch_nand, __tsan_atomic128_fetch_or, __tsan_atomic128_fetch_sub,
// Covers: __tsan_atomic128_fetch_xor, __tsan_atomic128_load, __tsan_atomic128_store,
// Covers: __tsan_read16, __tsan_write16, pthread_create, Read, Write, AtomicLoad, AtomicStore,
// Covers: AtomicUpdate, AtomicMiss
// Outcome: exit 0
// Flags: -mcx16 -latomic
#include <assert.h>
#include <pthread.h>

typedef unsigned __int128 u128;

enum { THREADS = 3, ROUNDS = 20 };

static u128 cell, counter, pair;

static u128 both(unsigned long high, unsigned long low)
{
    return (u128)high << 64 | low;
}

static void definitions(void)
{
    u128 value = both(1, ~0ul), expected;
    __atomic_store_n(&cell, value, __ATOMIC_RELEASE);
    assert(__atomic_load_n(&cell, __ATOMIC_ACQUIRE) == value);
    assert(__atomic_fetch_add(&cell, 1, __ATOMIC_SEQ_CST) == value);
    assert(cell == both(2, 0)); // The carry crosses the halves.
    assert(__atomic_fetch_sub(&cell, 1, __ATOMIC_SEQ_CST) == both(2, 0));
    assert(__atomic_fetch_and(&cell, both(3, 0xff), __ATOMIC_SEQ_CST) == value);
    assert(__atomic_fetch_or(&cell, both(0xf0, 0), __ATOMIC_SEQ_CST) == both(1, 0xff));
    assert(__atomic_fetch_xor(&cell, both(0xff, 1), __ATOMIC_SEQ_CST) == both(0xf1, 0xff));
    assert(__atomic_fetch_nand(&cell, both(2, 0xf0), __ATOMIC_SEQ_CST) == both(0x0e, 0xfe));
    assert(__atomic_exchange_n(&cell, 5, __ATOMIC_ACQ_REL) == ~both(2, 0xf0));
    expected = both(1, 5);
    assert(!__atomic_compare_exchange_n(&cell, &expected, 9, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    assert(expected == 5);
    assert(__atomic_compare_exchange_n(&cell, &expected, both(9, 9), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    assert(cell == both(9, 9));
}

static void *work(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        __atomic_fetch_add(&counter, both(1, 1), __ATOMIC_RELAXED);
        u128 seen = __atomic_load_n(&pair, __ATOMIC_ACQUIRE), next;
        do {
            assert((unsigned long)(seen >> 64) == 2 * (unsigned long)seen); // Never torn.
            next = both((unsigned long)(seen >> 64) + 2, (unsigned long)seen + 1);
        } while (!__atomic_compare_exchange_n(&pair, &seen, next, 1, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    }
    return argument;
}

int main(void)
{
    definitions();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(counter == both(THREADS * ROUNDS, THREADS * ROUNDS));
    assert(pair == both(2 * THREADS * ROUNDS, THREADS * ROUNDS));
    return 0;
}
