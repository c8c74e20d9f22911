// About: FUTEX_WAIT_BITSET, FUTEX_WAKE_BITSET, FUTEX_CMP_REQUEUE, FUTEX_REQUEUE.
// Covers: syscall
// Outcome: exit 0
//
// Counts of those who wait are exact only once all do, which the main thread finds out by
// asking how many a requeue onto the same word would move.
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_uint first, second;
static atomic_uint woken;

static long futex(atomic_uint *word, int operation, unsigned value, uintptr_t value2, atomic_uint *other, unsigned value3)
{
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, value2, other, value3);
}

static void *wait_for_bit(void *argument)
{
    unsigned bit = (unsigned)(uintptr_t)argument;
    assert(futex(&first, FUTEX_WAIT_BITSET, 0, 0, NULL, bit) == 0);
    woken |= bit;
    return NULL;
}

static void start(pthread_t *threads, int n, int spread)
{
    for (int i = 0; i < n; i++)
        assert(pthread_create(&threads[i], NULL, wait_for_bit, (void *)(uintptr_t)(spread ? 1u << i : 8u)) == 0);
    // Moved there and back again, nobody is lost.
    long n_moved = 0;
    while (n_moved < n) {
        n_moved += futex(&first, FUTEX_CMP_REQUEUE, 0, 100, &second, 0);
        sched_yield();
    }
    assert(n_moved == n);
    assert(futex(&second, FUTEX_REQUEUE, 0, 100, &first, 0) == n);
}

int main(void)
{
    pthread_t threads[3];
    assert(futex(&first, FUTEX_CMP_REQUEUE, 1, 1, &second, 7) == -1 && errno == EAGAIN);
    assert(futex(&first, FUTEX_WAIT_BITSET, 0, 0, NULL, 0) == -1 && errno == EINVAL);

    start(threads, 3, 1);
    assert(futex(&first, FUTEX_WAKE_BITSET, 100, 0, NULL, 8) == 0);
    assert(futex(&first, FUTEX_WAKE_BITSET, 100, 0, NULL, 2 | 8) == 1);
    assert(pthread_join(threads[1], NULL) == 0 && woken == 2);
    assert(futex(&first, FUTEX_WAKE_BITSET, 100, 0, NULL, FUTEX_BITSET_MATCH_ANY) == 2);
    assert(pthread_join(threads[0], NULL) == 0 && pthread_join(threads[2], NULL) == 0 && woken == 7);

    // One is woken, one moves on, one stays.
    start(threads, 3, 0);
    assert(futex(&first, FUTEX_CMP_REQUEUE, 1, 1, &second, 0) == 2);
    assert(futex(&second, FUTEX_WAKE, 100, 0, NULL, 0) == 1);
    assert(futex(&first, FUTEX_WAKE, 100, 0, NULL, 0) == 1);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    return 0;
}
