// About: a lock of one's own that one thread may release for another.
// Covers: AnnotateRWLockAcquired, AnnotateRWLockReleased, AnnotateRWLockCreate, AnnotateRWLockDestroy
// Outcome: exit 0 | misuse
// Must: misuse
// Free: its threads may both release the lock
#include <pthread.h>
#include <stdatomic.h>

// Weak, so that the program links without instrumentation as well.
__attribute__((weak)) void AnnotateRWLockCreate(const char *, int, const volatile void *);
__attribute__((weak)) void AnnotateRWLockDestroy(const char *, int, const volatile void *);
__attribute__((weak)) void AnnotateRWLockAcquired(const char *, int, const volatile void *, long);
__attribute__((weak)) void AnnotateRWLockReleased(const char *, int, const volatile void *, long);
#define ANNOTATE(name, ...) (name ? name(__FILE__, __LINE__, &word, ##__VA_ARGS__) : (void)0)

static atomic_int word;

static int try_lock(void)
{
    int expected = 0;
    if (!atomic_compare_exchange_strong(&word, &expected, 1))
        return 0;
    ANNOTATE(AnnotateRWLockAcquired, 1);
    return 1;
}

static void unlock(void)
{
    ANNOTATE(AnnotateRWLockReleased, 1);
    word = 0;
}

static void *work(void *argument)
{
    // Whether or not it got the lock.
    try_lock();
    unlock();
    return argument;
}

int main(void)
{
    pthread_t thread;
    ANNOTATE(AnnotateRWLockCreate);
    pthread_create(&thread, NULL, work, NULL);
    if (try_lock())
        unlock();
    pthread_join(thread, NULL);
    ANNOTATE(AnnotateRWLockDestroy);
    return 0;
}
