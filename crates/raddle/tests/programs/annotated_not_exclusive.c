// About: a lock of one's own that checks and then sets: two threads acquire it, which its annotations show.
// Covers: __tsan_mutex_create, __tsan_mutex_destroy, __tsan_mutex_post_lock, __tsan_mutex_pre_lock,
// Covers: __tsan_mutex_pre_unlock
// Outcome: exit 0 | misuse
// Must: misuse
// Free: its threads may both hold the lock
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

// Weak, so that the program links without instrumentation as well.
__attribute__((weak)) void __tsan_mutex_create(void *, unsigned);
__attribute__((weak)) void __tsan_mutex_destroy(void *, unsigned);
__attribute__((weak)) void __tsan_mutex_pre_lock(void *, unsigned);
__attribute__((weak)) void __tsan_mutex_post_lock(void *, unsigned, int);
__attribute__((weak)) int __tsan_mutex_pre_unlock(void *, unsigned);
#define ANNOTATE(call) (__tsan_mutex_create ? (void)(call) : (void)0)

static atomic_int word;
static int n;

static void *work(void *argument)
{
    for (int i = 0; i < 5; i++) {
        ANNOTATE(__tsan_mutex_pre_lock(&word, 0));
        while (word)
            sched_yield();
        word = 1;
        ANNOTATE(__tsan_mutex_post_lock(&word, 0, 0));
        n++;
        ANNOTATE(__tsan_mutex_pre_unlock(&word, 0));
        word = 0;
    }
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    ANNOTATE(__tsan_mutex_create(&word, 0));
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    ANNOTATE(__tsan_mutex_destroy(&word, 0));
    return 0;
}
