// About: __tsan_acquire, __tsan_release, AnnotateHappensBefore, AnnotateHappensAfter,
// AnnotateIgnoreReadsBegin and its kin, AnnotateBenignRaceSized.
// Covers: AnnotateBenignRaceSized, AnnotateHappensAfter, AnnotateHappensBefore,
// Covers: AnnotateIgnoreReadsBegin, AnnotateIgnoreReadsEnd, AnnotateIgnoreWritesBegin,
// Covers: AnnotateIgnoreWritesEnd, __tsan_acquire, __tsan_release, Before, After
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

// Weak, so that the program links without instrumentation as well.
__attribute__((weak)) void __tsan_acquire(void *);
__attribute__((weak)) void __tsan_release(void *);
__attribute__((weak)) void AnnotateHappensBefore(const char *, int, const volatile void *);
__attribute__((weak)) void AnnotateHappensAfter(const char *, int, const volatile void *);
__attribute__((weak)) void AnnotateIgnoreReadsBegin(const char *, int);
__attribute__((weak)) void AnnotateIgnoreReadsEnd(const char *, int);
__attribute__((weak)) void AnnotateIgnoreWritesBegin(const char *, int);
__attribute__((weak)) void AnnotateIgnoreWritesEnd(const char *, int);
__attribute__((weak)) void AnnotateBenignRaceSized(const char *, int, const volatile void *, unsigned long, const char *);
#define ANNOTATE(name, ...) (name ? name(__VA_ARGS__) : (void)0)

static int ends[2], message, n_statistics;

static void *receive(void *argument)
{
    char byte;
    assert(read(ends[0], &byte, 1) == 1);
    ANNOTATE(__tsan_acquire, ends);
    ANNOTATE(AnnotateHappensAfter, __FILE__, __LINE__, &message);
    assert(message == 42);
    ANNOTATE(AnnotateIgnoreReadsBegin, __FILE__, __LINE__);
    ANNOTATE(AnnotateIgnoreWritesBegin, __FILE__, __LINE__);
    n_statistics++;
    ANNOTATE(AnnotateIgnoreWritesEnd, __FILE__, __LINE__);
    ANNOTATE(AnnotateIgnoreReadsEnd, __FILE__, __LINE__);
    return argument;
}

int main(void)
{
    pthread_t thread;
    assert(pipe(ends) == 0);
    ANNOTATE(AnnotateBenignRaceSized, __FILE__, __LINE__, &n_statistics, sizeof n_statistics, "a guess");
    assert(pthread_create(&thread, NULL, receive, NULL) == 0);
    message = 42;
    n_statistics++;
    ANNOTATE(AnnotateHappensBefore, __FILE__, __LINE__, &message);
    ANNOTATE(__tsan_release, ends);
    assert(write(ends[1], "x", 1) == 1);
    assert(pthread_join(thread, NULL) == 0);
    assert(n_statistics == 1 || n_statistics == 2);
    return 0;
}
