// About: asynchronous cancellation of threads that spin on an atomic or yield, or when they ask for it or
// enable it with a cancellation pending.
// Covers: pthread_cancel, pthread_setcancelstate, pthread_setcanceltype, sched_yield
// Outcome: exit 0
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static atomic_int n_begun, never;
static atomic_llong wide;

static void anywhere(void)
{
    assert(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL) == 0);
}

static void *loads(void *argument)
{
    anywhere();
    n_begun++;
    while (never == 0) {
    }
    return argument;
}

static void *updates(void *argument)
{
    anywhere();
    n_begun++;
    for (;;)
        atomic_fetch_or(&wide, 0);
    return argument;
}

static void *yields(void *argument)
{
    anywhere();
    n_begun++;
    for (;;)
        sched_yield();
    return argument;
}

static void *asks_late(void *argument)
{
    n_begun++;
    assert(pthread_cancel(pthread_self()) == 0);
    anywhere();
    assert(!"outlived its cancellation");
    return argument;
}

static void *enables_late(void *argument)
{
    n_begun++;
    assert(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL) == 0);
    anywhere();
    assert(pthread_cancel(pthread_self()) == 0);
    for (int i = 0; i < 10; i++)
        wide++;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    assert(!"outlived its cancellation");
    return argument;
}

static void *cancels_itself(void *argument)
{
    n_begun++;
    anywhere();
    pthread_cancel(pthread_self());
    assert(!"outlived its cancellation");
    return argument;
}

int main(void)
{
    void *(*const starts[])(void *) = { loads, updates, yields, asks_late, enables_late, cancels_itself };
    enum { N = sizeof starts / sizeof *starts };
    pthread_t threads[N];
    assert(pthread_setcanceltype(77, NULL) == EINVAL && pthread_setcancelstate(77, NULL) == EINVAL);
    for (int i = 0; i < N; i++)
        assert(pthread_create(&threads[i], NULL, starts[i], NULL) == 0);
    while (n_begun < N)
        usleep(1000);
    for (int i = 0; i < 3; i++)
        assert(pthread_cancel(threads[i]) == 0);
    for (int i = 0; i < N; i++) {
        void *result;
        assert(pthread_join(threads[i], &result) == 0);
        // glibc 2.36 may lose this result.
        assert(result == PTHREAD_CANCELED || starts[i] == enables_late);
    }
    return 0;
}
