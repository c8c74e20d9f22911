// About: arguments that libc and the kernel refuse: bad nanoseconds, clocks, descriptors, counts, signals. A
// timed lock looks at its time only when it has to wait.
// Covers: clock_nanosleep, epoll_wait, nanosleep, ppoll, pselect, pthread_clockjoin_np
// Covers: pthread_mutex_clocklock, pthread_mutex_timedlock, pthread_timedjoin_np, select
// Covers: sem_timedwait, setitimer, timer_create, timer_gettime, timer_settime
// Outcome: exit 0
// Free: no, glibc spins in pthread_timedjoin_np with bad nanoseconds until the thread has ended
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define FAILS(call, error) (errno = 0, assert((call) == -1 && errno == (error)))

static const struct timespec zero, second = { .tv_sec = 1 }, negative = { .tv_sec = -1 },
                                   full = { .tv_nsec = 1000000000 }, below = { .tv_nsec = -1 };
static sem_t leave;

static void *stay(void *argument)
{
    while (sem_wait(&leave) != 0) {
    }
    return argument;
}

static void locks(void)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    assert(pthread_mutex_clocklock(&lock, CLOCK_PROCESS_CPUTIME_ID, &second) == EINVAL);
    assert(pthread_mutex_timedlock(&lock, &full) == 0);
    assert(pthread_mutex_timedlock(&lock, &full) == EINVAL);
    assert(pthread_mutex_timedlock(&lock, &below) == EINVAL);
    assert(pthread_mutex_timedlock(&lock, &negative) == ETIMEDOUT);
    assert(pthread_mutex_unlock(&lock) == 0);
    FAILS(sem_timedwait(&leave, &full), EINVAL);

    pthread_t thread;
    assert(pthread_create(&thread, NULL, stay, NULL) == 0);
    assert(pthread_timedjoin_np(thread, NULL, &full) == EINVAL);
    assert(pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &below) == EINVAL);
    assert(pthread_clockjoin_np(thread, NULL, CLOCK_PROCESS_CPUTIME_ID, &second) == EINVAL);
    assert(sem_post(&leave) == 0 && pthread_join(thread, NULL) == 0);
}

static void sleeps(void)
{
    FAILS(nanosleep(&negative, NULL), EINVAL);
    FAILS(nanosleep(&full, NULL), EINVAL);
    assert(clock_nanosleep(CLOCK_MONOTONIC, 0, &full, NULL) == EINVAL);
    assert(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &negative, NULL) == EINVAL);
    assert(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &zero, NULL) == EINVAL);
    assert(clock_nanosleep(12345, 0, &zero, NULL) == EINVAL);
    assert(clock_nanosleep(CLOCK_MONOTONIC_RAW, 0, &zero, NULL) == ENOTSUP);
    assert(clock_nanosleep(CLOCK_BOOTTIME, 0, &zero, NULL) == 0);
}

static void descriptors(void)
{
    struct epoll_event event;
    fd_set set;
    int queue = epoll_create1(0);
    FAILS(select(-1, NULL, NULL, NULL, NULL), EINVAL);
    FAILS(pselect(-1, NULL, NULL, NULL, NULL, NULL), EINVAL);
    FAILS(select(0, NULL, NULL, NULL, &(struct timeval){ .tv_sec = -1 }), EINVAL);
    FAILS(select(0, NULL, NULL, NULL, &(struct timeval){ .tv_usec = -1 }), EINVAL);
    assert(select(0, NULL, NULL, NULL, &(struct timeval){ .tv_usec = 1000000 }) == 0);
    FAILS(pselect(0, NULL, NULL, NULL, &full, NULL), EINVAL);
    FAILS(ppoll(NULL, 0, &negative, NULL), EINVAL);
    FD_ZERO(&set);
    FD_SET(77, &set);
    FAILS(select(78, &set, NULL, NULL, NULL), EBADF);
    FAILS(epoll_wait(queue, &event, 0, -1), EINVAL);
    FAILS(epoll_wait(77, &event, 1, -1), EBADF);
    assert(close(queue) == 0);
}

static void timers(void)
{
    timer_t timer;
    struct sigevent event = { .sigev_notify = SIGEV_NONE };
    struct itimerspec left;
    FAILS(timer_create(77, &event, &timer), EINVAL);
    FAILS(timer_create(CLOCK_MONOTONIC, &(struct sigevent){ .sigev_signo = 99 }, &timer), EINVAL);
    assert(timer_create(CLOCK_REALTIME, &event, &timer) == 0);
    FAILS(timer_settime(timer, 0, &(struct itimerspec){ .it_value = full }, NULL), EINVAL);
    FAILS(timer_settime(timer, 0, &(struct itimerspec){ .it_value = negative }, NULL), EINVAL);
    FAILS(timer_settime(timer, 0, &(struct itimerspec){ full, second }, NULL), EINVAL);
    assert(timer_gettime(timer, &left) == 0 && left.it_value.tv_sec == 0 && left.it_value.tv_nsec == 0);
    assert(timer_delete(timer) == 0);
    FAILS(setitimer(ITIMER_REAL, &(struct itimerval){ .it_value.tv_usec = 1000000 }, NULL), EINVAL);
}

int main(void)
{
    assert(sem_init(&leave, 0, 0) == 0);
    locks();
    sleeps();
    descriptors();
    timers();
    return 0;
}
