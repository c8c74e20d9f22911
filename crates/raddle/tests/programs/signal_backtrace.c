// About: a backtrace in a signal handler reaches main, or the routine that a thread started with, from
// wherever the signal came: a loop, a wait, or raise.
// Covers: pthread_kill, raise, sigaction, usleep
// Outcome: exit 0
#include <assert.h>
#include <execinfo.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static sem_t up;
static void *place;
static volatile int n_handled;
static volatile long total;

static void look(int signal)
{
    (void)signal;
    void *frames[64];
    int n = backtrace(frames, 64), n_found = 0;
    // Besides our own frame, there is one not too far behind the start of the function.
    for (int i = 1; i < n; i++)
        n_found += (char *)frames[i] > (char *)place && (char *)frames[i] < (char *)place + 1000;
    assert(n_found == 1);
    n_handled++;
}

static __attribute__((noinline)) void *compute(void *argument)
{
    place = (void *)compute;
    assert(sem_post(&up) == 0);
    while (!n_handled)
        total = total * 3 + 1;
    return argument;
}

static __attribute__((noinline)) void *stop(void *argument)
{
    place = (void *)stop;
    assert(sem_post(&up) == 0);
    while (n_handled < 2)
        usleep(1000);
    return argument;
}

int main(void)
{
    struct sigaction action = { .sa_handler = look };
    assert(sigaction(SIGUSR1, &action, NULL) == 0 && sem_init(&up, 0, 0) == 0);
    void *(*const routines[])(void *) = { compute, stop };
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        assert(pthread_create(&thread, NULL, routines[i], NULL) == 0 && sem_wait(&up) == 0);
        assert(pthread_kill(thread, SIGUSR1) == 0 && pthread_join(thread, NULL) == 0);
    }
    assert(n_handled == 2);
    place = (void *)main;
    assert(raise(SIGUSR1) == 0 && n_handled == 3);
    return 0;
}
