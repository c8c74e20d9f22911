// About: syscall(SYS_futex): FUTEX_WAIT, FUTEX_WAKE, EAGAIN; a mutex made of them.
// Covers: syscall
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 20 };

// 0: free; 1: taken; 2: taken and somebody may wait (Drepper, «Futexes Are Tricky»).
static atomic_int lock_word, gate;
static int count;

static long futex(atomic_int *word, int operation, int value)
{
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static void lock(void)
{
    int seen = 0;
    if (atomic_compare_exchange_strong(&lock_word, &seen, 1))
        return;
    if (seen != 2)
        seen = atomic_exchange(&lock_word, 2);
    while (seen != 0) {
        long result = futex(&lock_word, FUTEX_WAIT, 2);
        assert(result == 0 || errno == EAGAIN || errno == EINTR);
        seen = atomic_exchange(&lock_word, 2);
    }
}

static void unlock(void)
{
    if (atomic_exchange(&lock_word, 0) == 2)
        assert(futex(&lock_word, FUTEX_WAKE, 1) >= 0);
}

static void *work(void *argument)
{
    while (!gate)
        futex(&gate, FUTEX_WAIT, 0);
    for (int i = 0; i < ROUNDS; i++) {
        lock();
        int before = count;
        count = before + 1;
        unlock();
    }
    return argument;
}

int main(void)
{
    assert(futex(&gate, FUTEX_WAIT, 1) == -1 && errno == EAGAIN);
    assert(futex(&gate, FUTEX_WAKE, 10) == 0);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    gate = 1;
    long n_woken = futex(&gate, FUTEX_WAKE, 1000);
    assert(n_woken >= 0 && n_woken <= THREADS);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(count == THREADS * ROUNDS && lock_word == 0);
    return 0;
}
