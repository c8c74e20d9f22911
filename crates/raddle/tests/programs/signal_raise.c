// About: raise, signal, sigsuspend, sem_post in a handler, sigaltstack, a handler that is reset.
// Covers: raise, sem_post, signal, sigsuspend
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>

static sem_t seen;
static volatile sig_atomic_t n_raised, on_other_stack;
static char *stack;
static const size_t stack_bytes = 1 << 16;

static void count(int number)
{
    (void)number;
    n_raised++;
    sem_post(&seen);
}

static void where(int number)
{
    char here = (char)number;
    on_other_stack = &here >= stack && &here < stack + stack_bytes;
}

static void *wait_for_post(void *argument)
{
    for (int i = 0; i < 3; i++)
        while (sem_wait(&seen) != 0)
            assert(errno == EINTR);
    return argument;
}

int main(void)
{
    pthread_t thread;
    assert(sem_init(&seen, 0, 0) == 0);
    assert(signal(SIGUSR1, count) == SIG_DFL);
    assert(pthread_create(&thread, NULL, wait_for_post, NULL) == 0);
    assert(raise(SIGUSR1) == 0 && n_raised == 1);

    sigset_t blocked, open;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    assert(pthread_sigmask(SIG_BLOCK, &blocked, &open) == 0);
    assert(raise(SIGUSR1) == 0 && n_raised == 1);
    assert(sigsuspend(&open) == -1 && errno == EINTR && n_raised == 2);
    assert(pthread_sigmask(SIG_SETMASK, &open, NULL) == 0);

    struct sigaction once = { .sa_handler = count, .sa_flags = (int)SA_RESETHAND };
    struct sigaction now;
    assert(sigaction(SIGUSR2, &once, NULL) == 0 && raise(SIGUSR2) == 0 && n_raised == 3);
    assert(sigaction(SIGUSR2, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
    assert(pthread_join(thread, NULL) == 0);

    stack = malloc(stack_bytes);
    assert(stack && sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = stack_bytes }, NULL) == 0);
    struct sigaction elsewhere = { .sa_handler = where, .sa_flags = SA_ONSTACK };
    assert(sigaction(SIGUSR2, &elsewhere, NULL) == 0 && raise(SIGUSR2) == 0 && on_other_stack);
    return 0;
}
