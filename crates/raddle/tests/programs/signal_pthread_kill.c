// About: pthread_kill, sigaction with SA_SIGINFO, pthread_sigmask, sigpending; the handler runs in the
// thread that was meant.
// Covers: pthread_kill, pthread_sigmask, sigaction
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static pthread_t expected;
static atomic_int n_handled;
static sem_t ready, blocked;

static void handler(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    assert(number == SIGUSR1 && info->si_signo == SIGUSR1 && info->si_code == SI_TKILL && context);
    assert(info->si_pid == getpid());
    assert(pthread_equal(pthread_self(), expected));
    n_handled++;
    errno = saved;
}

static void *receive(void *argument)
{
    sem_post(&ready);
    while (n_handled == 0) {
    }
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    assert(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    sem_post(&ready);
    while (sem_wait(&blocked) != 0)
        assert(errno == EINTR);
    assert(n_handled == 1);
    assert(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1));
    assert(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
    assert(n_handled == 2); // Delivered before the call returned.
    return argument;
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO }, old;
    assert(sigaction(SIGUSR1, &action, &old) == 0 && old.sa_handler == SIG_DFL);
    assert(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_sigaction == handler);
    sem_init(&ready, 0, 0);
    sem_init(&blocked, 0, 0);
    assert(pthread_create(&expected, NULL, receive, NULL) == 0);
    assert(pthread_kill(expected, 0) == 0 && pthread_kill(expected, 12345) == EINVAL);
    assert(sem_wait(&ready) == 0);
    assert(pthread_kill(expected, SIGUSR1) == 0);
    assert(sem_wait(&ready) == 0);
    assert(pthread_kill(expected, SIGUSR1) == 0);
    assert(sem_post(&blocked) == 0);
    assert(pthread_join(expected, NULL) == 0);
    assert(n_handled == 2);
    return 0;
}
