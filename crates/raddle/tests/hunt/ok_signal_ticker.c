// Nothing is wrong: a POSIX timer sends SIGALRM every 20 milliseconds; the handler counts and writes
// to a pipe that it shares with a thread. Calls that the signal interrupts are made again.
// Hunt: clean

#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { TICKS = 5 };

static atomic_int n_ticks;
static int ends[2];

static void tick(int number)
{
    int error = errno;

    (void)number;
    atomic_fetch_add(&n_ticks, 1);
    if (write(ends[1], "t", 1) != 1)
        _exit(1);
    errno = error;
}

static void *log_ticks(void *argument)
{
    int *n_logged = argument;

    while (*n_logged < TICKS) {
        char byte;
        ssize_t n = read(ends[0], &byte, 1);
        if (n == 1)
            ++*n_logged;
        else
            assert(n < 0 && errno == EINTR);
    }
    return NULL;
}

int main(void)
{
    struct sigaction action = { .sa_handler = tick };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
    struct itimerspec period = { { 0, 20 * 1000 * 1000 }, { 0, 20 * 1000 * 1000 } };
    struct itimerspec never = { { 0, 0 }, { 0, 0 } };
    struct timespec rest = { 0, 50 * 1000 * 1000 };
    pthread_t logger;
    timer_t timer;
    int n_logged = 0;

    assert(pipe(ends) == 0);
    assert(sigaction(SIGALRM, &action, NULL) == 0);
    pthread_create(&logger, NULL, log_ticks, &n_logged);
    assert(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    assert(timer_settime(timer, 0, &period, NULL) == 0);
    while (nanosleep(&rest, &rest) != 0)
        assert(errno == EINTR);
    pthread_join(logger, NULL);
    assert(timer_settime(timer, 0, &never, NULL) == 0);
    assert(timer_delete(timer) == 0);
    assert(n_logged == TICKS);
    assert(atomic_load(&n_ticks) >= TICKS);
    return 0;
}
