// About: sigwait, sigwaitinfo, sigtimedwait in a thread of their own; kill, sigqueue with a value.
// Covers: kill, sigqueue, sigtimedwait, sigwait, sigwaitinfo
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static sigset_t set;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static int n_seen;

static void count(void)
{
    pthread_mutex_lock(&lock);
    n_seen++;
    pthread_cond_broadcast(&progress);
    pthread_mutex_unlock(&lock);
}

static void *watch(void *argument)
{
    int number;
    siginfo_t info;
    const struct timespec while_ = { .tv_nsec = 200000000 }, long_while = { .tv_sec = 10000 };
    assert(sigwait(&set, &number) == 0 && number == SIGUSR1);
    count();
    assert(sigwaitinfo(&set, &info) == SIGUSR2);
    assert(info.si_code == SI_QUEUE && info.si_value.sival_int == 99);
    count();
    assert(sigtimedwait(&set, &info, &long_while) == SIGTERM);
    count();
    assert(sigtimedwait(&set, &info, &while_) == -1 && errno == EAGAIN);
    return argument;
}

static void wait_until(int n)
{
    pthread_mutex_lock(&lock);
    while (n_seen < n)
        pthread_cond_wait(&progress, &lock);
    pthread_mutex_unlock(&lock);
}

int main(void)
{
    pthread_t thread;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGTERM);
    assert(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    assert(pthread_create(&thread, NULL, watch, NULL) == 0);
    assert(kill(getpid(), SIGUSR1) == 0);
    wait_until(1);
    assert(sigqueue(getpid(), SIGUSR2, (union sigval){ .sival_int = 99 }) == 0);
    wait_until(2);
    assert(pthread_kill(thread, SIGTERM) == 0);
    wait_until(3);
    assert(pthread_join(thread, NULL) == 0);
    return 0;
}
