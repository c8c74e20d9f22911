// About: a lock of one's own that is destroyed while a thread may hold it.
// Covers: __tsan_mutex_create, __tsan_mutex_destroy, __tsan_mutex_post_lock, __tsan_mutex_pre_lock,
// Covers: __tsan_mutex_pre_unlock
// Outcome: exit 0 | misuse
// Must: misuse
#include <pthread.h>

// Weak, so that the program links without instrumentation as well.
__attribute__((weak)) void __tsan_mutex_create(void *, unsigned);
__attribute__((weak)) void __tsan_mutex_destroy(void *, unsigned);
__attribute__((weak)) void __tsan_mutex_pre_lock(void *, unsigned);
__attribute__((weak)) void __tsan_mutex_post_lock(void *, unsigned, int);
__attribute__((weak)) int __tsan_mutex_pre_unlock(void *, unsigned);
#define ANNOTATE(call) (__tsan_mutex_create ? (void)(call) : (void)0)

static int word;

static void *work(void *argument)
{
    ANNOTATE(__tsan_mutex_pre_lock(&word, 0));
    word = 1;
    ANNOTATE(__tsan_mutex_post_lock(&word, 0, 0));
    ANNOTATE(__tsan_mutex_pre_unlock(&word, 0));
    word = 0;
    return argument;
}

int main(void)
{
    pthread_t thread;
    ANNOTATE(__tsan_mutex_create(&word, 0));
    pthread_create(&thread, NULL, work, NULL);
    ANNOTATE(__tsan_mutex_destroy(&word, 0));
    pthread_join(thread, NULL);
    return 0;
}
