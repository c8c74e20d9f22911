// About: setitimer with ITIMER_PROF and ITIMER_VIRTUAL: they fire while threads work, and not while all sleep.
// Covers: getitimer, setitimer, sleep
// Outcome: exit 0
// Free: no, in real time a machine may be too busy for the times that are checked
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/time.h>
#include <unistd.h>

static atomic_int n_profiled, n_virtual;
static volatile long work_done;

static void count(int number)
{
    if (number == SIGPROF)
        n_profiled++;
    else
        n_virtual++;
}

static void *work(void *argument)
{
    while (n_profiled < 3 || n_virtual < 1)
        work_done++;
    return argument;
}

int main(void)
{
    pthread_t thread;
    struct itimerval left;
    const struct itimerval often = { .it_value.tv_usec = 2000, .it_interval.tv_usec = 2000 };
    const struct itimerval once = { .it_value.tv_usec = 3000 }, off = { 0 };
    assert(signal(SIGPROF, count) == SIG_DFL && signal(SIGVTALRM, count) == SIG_DFL);
    assert(setitimer(ITIMER_PROF, &often, NULL) == 0 && setitimer(ITIMER_VIRTUAL, &once, NULL) == 0);
    assert(sleep(10) == 0 && n_profiled == 0 && n_virtual == 0);
    assert(getitimer(ITIMER_PROF, &left) == 0);
    assert(left.it_value.tv_sec == 0 && left.it_value.tv_usec > 0 && left.it_value.tv_usec <= 20000);

    assert(pthread_create(&thread, NULL, work, NULL) == 0);
    assert(pthread_join(thread, NULL) == 0);
    assert(n_profiled >= 3 && n_virtual == 1);
    assert(setitimer(ITIMER_PROF, &off, &left) == 0 && left.it_interval.tv_usec == 2000);
    assert(getitimer(ITIMER_VIRTUAL, &left) == 0 && left.it_value.tv_usec == 0);
    return 0;
}
