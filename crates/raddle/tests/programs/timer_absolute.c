// About: timer_settime with TIMER_ABSTIME: the time is one of the timer's own clock.
// Covers: clock_gettime, pause, timer_create, timer_gettime, timer_settime
// Outcome: exit 0
#include <assert.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static atomic_int n_fired;

static void fire(int number)
{
    (void)number;
    n_fired++;
}

static void until(clockid_t clock)
{
    timer_t timer;
    struct timespec now;
    struct itimerspec left;
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    assert(timer_create(clock, &event, &timer) == 0 && clock_gettime(clock, &now) == 0);
    const time_t due = now.tv_sec + 1;
    const struct itimerspec at = { .it_value.tv_sec = due };
    n_fired = 0;
    assert(timer_settime(timer, TIMER_ABSTIME, &at, NULL) == 0);
    assert(timer_gettime(timer, &left) == 0 && left.it_value.tv_sec <= 1);
    while (n_fired == 0)
        pause();
    assert(clock_gettime(clock, &now) == 0 && now.tv_sec >= due && now.tv_sec <= due + 1);

    // What is past fires at once.
    n_fired = 0;
    assert(timer_settime(timer, TIMER_ABSTIME, &at, NULL) == 0);
    while (n_fired == 0)
        usleep(100);
    assert(timer_delete(timer) == 0);
}

int main(void)
{
    assert(signal(SIGUSR1, fire) == SIG_DFL);
    until(CLOCK_REALTIME);
    until(CLOCK_MONOTONIC);
    return 0;
}
