// About: recursive locks of one's own, by ThreadSanitizer's annotations, by those for reader-writer locks,
// and by those for Java: released entirely and acquired again as many times.
// Covers: __tsan_mutex_create, __tsan_mutex_destroy, __tsan_mutex_post_lock, __tsan_mutex_pre_lock,
// Covers: __tsan_mutex_pre_unlock, __tsan_java_acquire, __tsan_java_mutex_lock, __tsan_java_mutex_lock_rec,
// Covers: __tsan_java_mutex_read_lock, __tsan_java_mutex_read_unlock, __tsan_java_mutex_unlock,
// Covers: __tsan_java_mutex_unlock_rec, __tsan_java_release, __tsan_java_release_store,
// Covers: AnnotateRWLockAcquired, AnnotateRWLockCreateStatic, AnnotateRWLockDestroy, AnnotateRWLockReleased
// Outcome: exit 0
// Free: only the model counts
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

// Weak, so that the program links without instrumentation as well.
#define WEAK __attribute__((weak))
WEAK void __tsan_mutex_create(void *, unsigned);
WEAK void __tsan_mutex_destroy(void *, unsigned);
WEAK void __tsan_mutex_pre_lock(void *, unsigned);
WEAK void __tsan_mutex_post_lock(void *, unsigned, int);
WEAK int __tsan_mutex_pre_unlock(void *, unsigned);
WEAK void __tsan_java_acquire(unsigned long);
WEAK void __tsan_java_release(unsigned long);
WEAK void __tsan_java_release_store(unsigned long);
WEAK void __tsan_java_mutex_lock(unsigned long);
WEAK void __tsan_java_mutex_unlock(unsigned long);
WEAK void __tsan_java_mutex_read_lock(unsigned long);
WEAK void __tsan_java_mutex_read_unlock(unsigned long);
WEAK void __tsan_java_mutex_lock_rec(unsigned long, int);
WEAK int __tsan_java_mutex_unlock_rec(unsigned long);
WEAK void AnnotateRWLockCreateStatic(const char *, int, const volatile void *);
WEAK void AnnotateRWLockDestroy(const char *, int, const volatile void *);
WEAK void AnnotateRWLockAcquired(const char *, int, const volatile void *, long);
WEAK void AnnotateRWLockReleased(const char *, int, const volatile void *, long);
enum { REENTRANT = 1 << 1, RECURSIVE_LOCK = 1 << 6, RECURSIVE_UNLOCK = 1 << 7 };

static pthread_mutex_t real = PTHREAD_MUTEX_INITIALIZER;
static long words[3];
static int n;

static void recursive(void)
{
    for (int i = 0; i < 3; i++) {
        __tsan_mutex_pre_lock(&words[0], REENTRANT);
        __tsan_mutex_post_lock(&words[0], REENTRANT, 0);
    }
    int depth = __tsan_mutex_pre_unlock(&words[0], RECURSIVE_UNLOCK);
    assert(depth == 3);
    __tsan_mutex_pre_lock(&words[0], RECURSIVE_LOCK);
    __tsan_mutex_post_lock(&words[0], RECURSIVE_LOCK, depth);
    for (int i = 0; i < 3; i++)
        __tsan_mutex_pre_unlock(&words[0], 0);
}

static void java(unsigned long word)
{
    __tsan_java_mutex_lock(word);
    __tsan_java_mutex_lock(word);
    assert(__tsan_java_mutex_unlock_rec(word) == 2);
    __tsan_java_mutex_lock_rec(word, 2);
    __tsan_java_mutex_unlock(word);
    __tsan_java_mutex_unlock(word);
    __tsan_java_mutex_read_lock(word);
    __tsan_java_mutex_read_unlock(word);
    __tsan_java_acquire(word);
    __tsan_java_release(word);
    __tsan_java_release_store(word);
}

static void *work(void *argument)
{
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&real);
        recursive();
        java((unsigned long)&words[1]);
        AnnotateRWLockAcquired(__FILE__, __LINE__, &words[2], 1);
        n++;
        AnnotateRWLockReleased(__FILE__, __LINE__, &words[2], 1);
        AnnotateRWLockAcquired(__FILE__, __LINE__, &words[2], 0);
        AnnotateRWLockReleased(__FILE__, __LINE__, &words[2], 0);
        pthread_mutex_unlock(&real);
    }
    return argument;
}

int main(void)
{
    if (__tsan_mutex_create == NULL)
        return 0;
    pthread_t threads[2];
    __tsan_mutex_create(&words[0], REENTRANT);
    AnnotateRWLockCreateStatic(__FILE__, __LINE__, &words[2]);
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    __tsan_mutex_destroy(&words[0], 0);
    AnnotateRWLockDestroy(__FILE__, __LINE__, &words[2]);
    assert(n == 6);
    return 0;
}
