// About: signals that end nanosleep, pause, sem_wait, read with EINTR; SA_RESTART, which does not.
// Covers: nanosleep, pause, read, sem_wait
// Outcome: exit 0
//
// The sender repeats itself until it was heard, since a signal may come before the call.
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static sem_t never;
static int empty_pipe[2];
static atomic_int stage, n_handled;

static void handler(int number)
{
    (void)number;
    n_handled++;
}

static void *be_interrupted(void *argument)
{
    const struct timespec ages = { .tv_sec = 100000 };
    struct timespec rest;
    char byte;
    stage = 1;
    assert(nanosleep(&ages, &rest) == -1 && errno == EINTR);
    assert(rest.tv_sec > 0 && rest.tv_sec <= 100000);
    stage = 2;
    assert(pause() == -1 && errno == EINTR);
    stage = 3;
    assert(sem_wait(&never) == -1 && errno == EINTR);
    stage = 4;
    assert(read(empty_pipe[0], &byte, 1) == -1 && errno == EINTR);
    stage = 5;
    assert(sleep(100000) > 0);
    sigset_t interrupting;
    sigemptyset(&interrupting);
    sigaddset(&interrupting, SIGUSR1);
    assert(pthread_sigmask(SIG_BLOCK, &interrupting, NULL) == 0);
    stage = 6;
    // Restarted after the handler of SIGUSR2, so only a byte ends it.
    assert(read(empty_pipe[0], &byte, 1) == 1);
    stage = 7;
    return argument;
}

int main(void)
{
    pthread_t thread;
    struct sigaction action = { .sa_handler = handler };
    assert(sigaction(SIGUSR1, &action, NULL) == 0);
    action.sa_flags = SA_RESTART;
    assert(sigaction(SIGUSR2, &action, NULL) == 0);
    assert(sem_init(&never, 0, 0) == 0 && pipe(empty_pipe) == 0);
    assert(pthread_create(&thread, NULL, be_interrupted, NULL) == 0);
    while (stage < 6) {
        if (stage > 0)
            assert(pthread_kill(thread, SIGUSR1) == 0);
        usleep(1000);
    }
    usleep(10000);
    int before = n_handled;
    assert(pthread_kill(thread, SIGUSR2) == 0);
    while (n_handled == before)
        usleep(1000);
    assert(stage == 6);
    assert(write(empty_pipe[1], "x", 1) == 1);
    assert(pthread_join(thread, NULL) == 0);
    assert(stage == 7);
    return 0;
}
