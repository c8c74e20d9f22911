// About: a signal to the process that the sender blocks: it interrupts a thread that does not, or is found by
// sigwait, sigwaitinfo, sigtimedwait, or a signalfd.
// Covers: kill, read, sigqueue, sigtimedwait, sigwait, sigwaitinfo
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/signalfd.h>
#include <unistd.h>

static sigset_t set;
static sem_t ready, seen;
static atomic_int n_users, n_queued;
static pthread_t receiver;

static void handler(int number, siginfo_t *info, void *context)
{
    assert(context && info->si_signo == number && info->si_pid == getpid() && info->si_uid == getuid());
    assert(pthread_equal(pthread_self(), receiver));
    if (info->si_code == SI_USER)
        n_users++;
    else if (info->si_code == SI_QUEUE && info->si_value.sival_int == 42)
        n_queued++;
    assert(sem_post(&seen) == 0);
}

static void *be_interrupted(void *argument)
{
    assert(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
    for (int i = 0; i < 2; i++) {
        assert(sem_post(&ready) == 0);
        while (sem_wait(&seen) != 0)
            assert(errno == EINTR);
    }
    return argument;
}

static void *wait_for_them(void *argument)
{
    int number;
    siginfo_t info;
    assert(sigwait(&set, &number) == 0 && number == SIGUSR1);
    assert(sigwaitinfo(&set, &info) == SIGUSR2 && info.si_value.sival_int == 7);
    assert(sigtimedwait(&set, &info, &(struct timespec){ .tv_sec = 100000 }) == SIGUSR1);
    assert(info.si_code == SI_USER);
    return argument;
}

static void *read_them(void *argument)
{
    struct signalfd_siginfo info;
    int descriptor = signalfd(-1, &set, 0);
    for (int i = 0; i < 2; i++) {
        struct pollfd input = { .fd = descriptor, .events = POLLIN };
        if (i > 0)
            assert(poll(&input, 1, -1) == 1);
        assert(read(descriptor, &info, sizeof info) == sizeof info && info.ssi_signo == SIGUSR1);
    }
    assert(close(descriptor) == 0);
    return argument;
}

static void wait_until_seen(int number)
{
    sigset_t pending;
    do {
        usleep(1000);
        assert(sigpending(&pending) == 0);
    } while (sigismember(&pending, number));
}

int main(void)
{
    pthread_t thread;
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    assert(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0 && sem_init(&ready, 0, 0) == 0);
    assert(sem_init(&seen, 0, 0) == 0);
    assert(sigaction(SIGUSR1, &action, NULL) == 0 && sigaction(SIGUSR2, &action, NULL) == 0);

    assert(pthread_create(&receiver, NULL, be_interrupted, NULL) == 0);
    assert(sem_wait(&ready) == 0 && kill(getpid(), SIGUSR1) == 0);
    assert(sem_wait(&ready) == 0 && n_users == 1);
    assert(sigqueue(getpid(), SIGUSR2, (union sigval){ .sival_int = 42 }) == 0);
    assert(pthread_join(receiver, NULL) == 0 && n_queued == 1);
    assert(signal(SIGUSR1, SIG_IGN) != SIG_ERR && signal(SIGUSR2, SIG_IGN) != SIG_ERR);
    assert(signal(SIGUSR1, SIG_DFL) != SIG_ERR && signal(SIGUSR2, SIG_DFL) != SIG_ERR);

    assert(pthread_create(&thread, NULL, wait_for_them, NULL) == 0);
    assert(kill(getpid(), SIGUSR1) == 0);
    wait_until_seen(SIGUSR1);
    assert(sigqueue(getpid(), SIGUSR2, (union sigval){ .sival_int = 7 }) == 0);
    wait_until_seen(SIGUSR2);
    assert(kill(getpid(), SIGUSR1) == 0);
    assert(pthread_join(thread, NULL) == 0);

    assert(pthread_create(&thread, NULL, read_them, NULL) == 0);
    assert(kill(getpid(), SIGUSR1) == 0);
    wait_until_seen(SIGUSR1);
    assert(kill(getpid(), SIGUSR1) == 0);
    assert(pthread_join(thread, NULL) == 0);
    return 0;
}
