// About: alarm, setitimer, timer_create with SIGEV_SIGNAL: handlers that run in time.
// Covers: alarm, setitimer, timer_create
// Outcome: exit 0
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static atomic_int n_alarms, n_ticks;
static volatile long work_done;

static void on_alarm(int number)
{
    if (number == SIGALRM)
        n_alarms++;
    else
        n_ticks++;
}

static void *work(void *argument)
{
    while (n_alarms < 3 || n_ticks < 1)
        work_done++;
    return argument;
}

int main(void)
{
    pthread_t thread;
    struct sigaction action = { .sa_handler = on_alarm };
    assert(sigaction(SIGALRM, &action, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);

    // Asleep while time passes.
    assert(alarm(1000) == 0 && alarm(1) > 0);
    while (n_alarms == 0)
        pause();
    assert(n_alarms == 1 && alarm(0) == 0);

    // A thread works while time passes.
    assert(pthread_create(&thread, NULL, work, NULL) == 0);
    const struct itimerval twice = { .it_value.tv_usec = 5000, .it_interval.tv_usec = 5000 };
    assert(setitimer(ITIMER_REAL, &twice, NULL) == 0);
    timer_t timer;
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    assert(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    const struct itimerspec soon = { .it_value.tv_nsec = 5000000 };
    assert(timer_settime(timer, 0, &soon, NULL) == 0);
    assert(pthread_join(thread, NULL) == 0);
    const struct itimerval off = { 0 };
    assert(setitimer(ITIMER_REAL, &off, NULL) == 0);
    assert(timer_delete(timer) == 0);
    assert(n_alarms >= 3 && n_ticks == 1);
    return 0;
}
