// About: atomics of 1, 2, 4 and 8 bytes: load, store, exchange, compare-exchange, fetch-and-op.
// Covers: __tsan_atomic16_compare_exchange_strong, __tsan_atomic16_compare_exchange_weak,
// Covers: __tsan_atomic16_exchange, __tsan_atomic16_fetch_add, __tsan_atomic16_fetch_and,
// Covers: __tsan_atomic16_fetch_nand, __tsan_atomic16_fetch_or, __tsan_atomic16_fetch_sub,
// Covers: __tsan_atomic16_fetch_xor, __tsan_atomic16_load, __tsan_atomic16_store,
// Covers: __tsan_atomic32_compare_exchange_strong, __tsan_atomic32_compare_exchange_weak,
// Covers: __tsan_atomic32_exchange, __tsan_atomic32_fetch_add, __tsan_atomic32_fetch_and,
// Covers: __tsan_atomic32_fetch_nand, __tsan_atomic32_fetch_or, __tsan_atomic32_fetch_sub,
// Covers: __tsan_atomic32_fetch_xor, __tsan_atomic32_load, __tsan_atomic32_store,
// Covers: __tsan_atomic64_compare_exchange_strong, __tsan_atomic64_compare_exchange_weak,
// Covers: __tsan_atomic64_exchange, __tsan_atomic64_fetch_add, __tsan_atomic64_fetch_and,
// Covers: __tsan_atomic64_fetch_nand, __tsan_atomic64_fetch_or, __tsan_atomic64_fetch_sub,
// Covers: __tsan_atomic64_fetch_xor, __tsan_atomic64_load, __tsan_atomic64_store,
// Covers: __tsan_atomic8_compare_exchange_strong, __tsan_atomic8_compare_exchange_weak,
// Covers: __tsan_atomic8_exchange, __tsan_atomic8_fetch_add, __tsan_atomic8_fetch_and,
// Covers: __tsan_atomic8_fetch_nand, __tsan_atomic8_fetch_or, __tsan_atomic8_fetch_sub,
// Covers: __tsan_atomic8_fetch_xor, __tsan_atomic8_load, __tsan_atomic8_store, __tsan_read1,
// Covers: __tsan_read2, __tsan_read4, __tsan_read8, __tsan_write1, __tsan_write2, __tsan_write4,
// Covers: __tsan_write8, Read, Write, AtomicLoad, AtomicStore, AtomicUpdate, AtomicMiss
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <stdint.h>

enum { THREADS = 3, ROUNDS = 21 };

#define EACH(X) X(uint8_t, a8) X(uint16_t, a16) X(uint32_t, a32) X(uint64_t, a64)
#define DECLARE(type, name) static type name, name##_sum;
EACH(DECLARE)

// One after the other, every operation against its definition.
#define SINGLE(type, name)                                                                         \
    {                                                                                              \
        type value = (type)0x1122334455667788u, mask = (type)0x0f0f0f0f0f0f0f0fu, expected;        \
        __atomic_store_n(&name, value, __ATOMIC_RELEASE);                                          \
        assert(__atomic_load_n(&name, __ATOMIC_ACQUIRE) == value);                                 \
        assert(__atomic_fetch_add(&name, 200, __ATOMIC_RELAXED) == value);                         \
        assert(__atomic_fetch_sub(&name, 100, __ATOMIC_ACQ_REL) == (type)(value + 200));           \
        assert(__atomic_fetch_and(&name, mask, __ATOMIC_SEQ_CST) == (type)(value + 100));          \
        value = (type)(value + 100) & mask;                                                        \
        assert(__atomic_fetch_or(&name, 0x30, __ATOMIC_SEQ_CST) == value);                         \
        assert(__atomic_fetch_xor(&name, 0x50, __ATOMIC_SEQ_CST) == (type)(value | 0x30));         \
        value = (type)(value | 0x30) ^ 0x50;                                                       \
        assert(__atomic_fetch_nand(&name, mask, __ATOMIC_SEQ_CST) == value);                       \
        value = (type)~(value & mask);                                                             \
        assert(__atomic_exchange_n(&name, 77, __ATOMIC_ACQ_REL) == value);                         \
        expected = 78;                                                                             \
        assert(!__atomic_compare_exchange_n(&name, &expected, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)); \
        assert(expected == 77);                                                                    \
        while (!__atomic_compare_exchange_n(&name, &expected, 0, 1, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) { \
        }                                                                                          \
        assert(__atomic_add_fetch(&name, 9, __ATOMIC_CONSUME) == 9 && __sync_val_compare_and_swap(&name, 9, 0) == 9); \
    }

#define SHARED(type, name)                                                                         \
    __atomic_fetch_add(&name, 1, __ATOMIC_RELAXED);                                                \
    for (type old = __atomic_load_n(&name##_sum, __ATOMIC_RELAXED);                                \
         !__atomic_compare_exchange_n(&name##_sum, &old, (type)(old + 3), 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED);) { \
    }

#define CHECK(type, name) assert(name == THREADS * ROUNDS && name##_sum == (type)(3 * THREADS * ROUNDS));

static void *work(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        EACH(SHARED)
    }
    return argument;
}

int main(void)
{
    EACH(SINGLE)
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    EACH(CHECK)
    return 0;
}
