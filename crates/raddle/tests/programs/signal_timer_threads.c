// About: threads that timers start (SIGEV_THREAD): they are detached, block all signals, have the
// attributes that were given, and can be cancelled. Expirations that come while the last one waits for
// its thread are counted. None come after timer_delete.
// Covers: pthread_cancel, timer_create, timer_delete, timer_getoverrun, timer_gettime, timer_settime
// Outcome: exit 0
// Free: no, a thread that blocks in the kernel is cancelled under control only
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 1 << 20, MS = 1000000 };
static sem_t started, ended;
static pthread_t thread;
static int n_calls;

static void check(union sigval value)
{
    sigset_t blocked;
    pthread_attr_t attributes;
    size_t bytes;
    int state;
    assert(pthread_sigmask(SIG_SETMASK, NULL, &blocked) == 0 && sigismember(&blocked, SIGTERM));
    assert(pthread_getattr_np(pthread_self(), &attributes) == 0);
    assert(pthread_attr_getdetachstate(&attributes, &state) == 0);
    assert(pthread_attr_getstacksize(&attributes, &bytes) == 0 && bytes == STACK_BYTES);
    assert(state == PTHREAD_CREATE_DETACHED && pthread_attr_destroy(&attributes) == 0);
    *(int *)value.sival_ptr = 7;
    assert(sem_post(&ended) == 0);
}

static void count(union sigval value)
{
    __atomic_add_fetch((int *)value.sival_ptr, 1, __ATOMIC_SEQ_CST);
}

static void post(void *semaphore)
{
    assert(sem_post(semaphore) == 0);
}

static void stay(union sigval value)
{
    pthread_cleanup_push(post, value.sival_ptr);
    thread = pthread_self();
    assert(sem_post(&started) == 0);
    for (;;)
        pause();
    pthread_cleanup_pop(0);
}

static timer_t start(void (*function)(union sigval), void *value, pthread_attr_t *attributes, long ms,
                     long interval)
{
    timer_t timer;
    struct itimerspec time = { { .tv_nsec = interval * MS }, { .tv_nsec = ms * MS } }, left;
    struct sigevent event = { .sigev_notify = SIGEV_THREAD, .sigev_value.sival_ptr = value };
    event.sigev_notify_function = function;
    event.sigev_notify_attributes = attributes;
    assert(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    assert(timer_gettime(timer, &left) == 0 && left.it_value.tv_nsec == 0);
    assert(timer_settime(timer, 0, &time, NULL) == 0);
    return timer;
}

int main(void)
{
    int result = 0;
    pthread_attr_t attributes;
    assert(sem_init(&started, 0, 0) == 0 && sem_init(&ended, 0, 0) == 0);
    assert(pthread_attr_init(&attributes) == 0);
    assert(pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0);
    timer_t once = start(check, &result, &attributes, 10, 0);
    assert(sem_wait(&ended) == 0 && result == 7 && timer_getoverrun(once) == 0);
    timer_t canceled = start(stay, &ended, NULL, 10, 0);
    assert(sem_wait(&started) == 0 && pthread_cancel(thread) == 0 && sem_wait(&ended) == 0);
    timer_t often = start(count, &n_calls, NULL, 1, 1);
    while (__atomic_load_n(&n_calls, __ATOMIC_SEQ_CST) < 5)
        usleep(100);
    assert(timer_getoverrun(often) >= 0 && timer_delete(often) == 0);
    usleep(100000);
    int n_before = __atomic_load_n(&n_calls, __ATOMIC_SEQ_CST);
    usleep(100000);
    assert(__atomic_load_n(&n_calls, __ATOMIC_SEQ_CST) == n_before);
    assert(timer_delete(once) == 0 && timer_delete(canceled) == 0);
    return 0;
}
