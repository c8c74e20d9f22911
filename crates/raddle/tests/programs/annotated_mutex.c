// About: __tsan_mutex_create, _pre_lock, _post_lock, _pre_unlock, _post_unlock, _destroy around a lock of
// one's own, with try and read locks.
// Covers: __tsan_mutex_create, __tsan_mutex_destroy, __tsan_mutex_post_lock,
// Covers: __tsan_mutex_post_unlock, __tsan_mutex_pre_lock, __tsan_mutex_pre_unlock
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

// Weak, so that the program links without instrumentation as well.
__attribute__((weak)) void __tsan_mutex_create(void *, unsigned);
__attribute__((weak)) void __tsan_mutex_destroy(void *, unsigned);
__attribute__((weak)) void __tsan_mutex_pre_lock(void *, unsigned);
__attribute__((weak)) void __tsan_mutex_post_lock(void *, unsigned, int);
__attribute__((weak)) int __tsan_mutex_pre_unlock(void *, unsigned);
__attribute__((weak)) void __tsan_mutex_post_unlock(void *, unsigned);
enum { READ = 1 << 3, TRY = 1 << 4, TRY_READ = READ | TRY, TRY_FAILED = 1 << 5 };
#define ANNOTATE(call) (__tsan_mutex_create ? (void)(call) : (void)0)

// -1: a writer; n: readers.
static atomic_int word;
static int left, right;

static int try_lock(int flags)
{
    ANNOTATE(__tsan_mutex_pre_lock(&word, flags | TRY));
    int n = word;
    int ok = flags & READ ? n >= 0 && atomic_compare_exchange_strong(&word, &n, n + 1)
                          : n == 0 && atomic_compare_exchange_strong(&word, &n, -1);
    ANNOTATE(__tsan_mutex_post_lock(&word, flags | TRY | (ok ? 0 : TRY_FAILED), 0));
    return ok;
}

static void unlock(int flags)
{
    ANNOTATE(__tsan_mutex_pre_unlock(&word, flags));
    if (flags & READ)
        word--;
    else
        word = 0;
    ANNOTATE(__tsan_mutex_post_unlock(&word, flags));
}

static void *work(void *argument)
{
    for (int i = 0; i < 10; i++) {
        while (!try_lock(0))
            sched_yield();
        left++;
        right++;
        unlock(0);
        while (!try_lock(READ))
            sched_yield();
        assert(left == right);
        unlock(READ);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[3];
    ANNOTATE(__tsan_mutex_create(&word, 0));
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    ANNOTATE(__tsan_mutex_destroy(&word, 0));
    assert(left == 30 && right == 30);
    return 0;
}
