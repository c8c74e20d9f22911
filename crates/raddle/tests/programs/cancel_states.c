// About: pthread_setcancelstate, pthread_testcancel, asynchronous cancellation of a loop that
// calls nothing.
// Covers: pthread_setcancelstate, pthread_setcanceltype, pthread_testcancel
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int stage, n_survived;
static volatile unsigned long spins;

static void *protected(void *argument)
{
    int old;
    assert(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old) == 0);
    assert(old == PTHREAD_CANCEL_ENABLE);
    stage = 1;
    while (stage != 2)
        usleep(1000);
    pthread_testcancel();
    usleep(1000);
    n_survived = 1;
    assert(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old) == 0);
    assert(old == PTHREAD_CANCEL_DISABLE);
    pthread_testcancel();
    assert(!"outlived its cancellation");
    return argument;
}

static void *spins_forever(void *argument)
{
    int old;
    assert(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old) == 0);
    assert(old == PTHREAD_CANCEL_DEFERRED);
    stage = 3;
    for (;;)
        spins++;
    return argument;
}

int main(void)
{
    pthread_t thread;
    void *result;
    assert(pthread_create(&thread, NULL, protected, NULL) == 0);
    while (stage != 1)
        usleep(1000);
    assert(pthread_cancel(thread) == 0);
    stage = 2;
    assert(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    assert(n_survived == 1);

    assert(pthread_create(&thread, NULL, spins_forever, NULL) == 0);
    while (stage != 3)
        usleep(1000);
    assert(pthread_cancel(thread) == 0);
    assert(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    return 0;
}
