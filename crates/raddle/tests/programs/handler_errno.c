// About: signal handlers that change errno. Only that of SIGUSR1 is wrong: SIGUSR2's restores it, SIGHUP is raised by
// the thread itself, which expects the call, and SIGTERM's usually ends the program.
// Covers: pthread_kill, raise
// Outcome: exit 0
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int n_handled, is_over;

static void spoil(int number)
{
    (void)number;
    close(-1);
    n_handled++;
}

static void restore(int number)
{
    int before = errno;
    spoil(number);
    errno = before;
}

static void *work(void *argument)
{
    while (!is_over) {
        errno = 0;
        usleep(1);
    }
    return argument;
}

static void send(pthread_t thread, int number)
{
    int before = n_handled;
    assert(pthread_kill(thread, number) == 0);
    while (n_handled == before)
        usleep(1);
}

int main(void)
{
    pthread_t thread;
    struct sigaction spoils = { .sa_handler = spoil }, restores = { .sa_handler = restore };
    assert(sigaction(SIGUSR1, &spoils, NULL) == 0 && sigaction(SIGUSR2, &restores, NULL) == 0);
    assert(sigaction(SIGHUP, &spoils, NULL) == 0 && sigaction(SIGTERM, &spoils, NULL) == 0);
    assert(pthread_create(&thread, NULL, work, NULL) == 0);
    send(thread, SIGUSR1);
    send(thread, SIGUSR1);
    send(thread, SIGUSR2);
    send(thread, SIGTERM);
    errno = 0;
    assert(raise(SIGHUP) == 0 && errno == EBADF);
    is_over = 1;
    assert(pthread_join(thread, NULL) == 0 && n_handled == 5);
    return 0;
}
