// About: asynchronous cancellation ends a thread in a raw system call; deferred cancellation does not.
// Covers: syscall, pthread_cancel, pthread_setcanceltype
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_barrier_t ready;
static atomic_int n_interrupted;

static void handle(int signal)
{
    (void)signal;
}

static void *wait_asynchronously(void *argument)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    pthread_barrier_wait(&ready);
    for (;;)
        syscall(SYS_pause);
    return argument;
}

static void *wait_deferred(void *argument)
{
    pthread_barrier_wait(&ready);
    // The cancellation that is pending does not end it, but a signal does.
    assert(syscall(SYS_pause) == -1 && errno == EINTR);
    atomic_fetch_add(&n_interrupted, 1);
    pthread_testcancel();
    return argument;
}

int main(void)
{
    pthread_t one, two;
    void *result;
    struct sigaction action = { .sa_handler = handle };
    sigaction(SIGUSR1, &action, NULL);

    pthread_barrier_init(&ready, NULL, 2);
    pthread_create(&one, NULL, wait_asynchronously, NULL);
    pthread_barrier_wait(&ready);
    pthread_cancel(one);
    assert(pthread_join(one, &result) == 0 && result == PTHREAD_CANCELED);

    pthread_create(&two, NULL, wait_deferred, NULL);
    pthread_barrier_wait(&ready);
    pthread_cancel(two);
    while (atomic_load(&n_interrupted) == 0) {
        pthread_kill(two, SIGUSR1);
        usleep(1000);
    }
    assert(pthread_join(two, &result) == 0 && result == PTHREAD_CANCELED);
    return 0;
}
