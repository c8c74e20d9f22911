// About: timerfd_create, timerfd_settime, timerfd_gettime: read, poll, select and epoll, level- and
// edge-triggered, see the timer when its time has come, however long that takes.
// Covers: epoll_wait, poll, read, select, timerfd_create, timerfd_gettime, timerfd_settime
// Outcome: exit 0
// Free: no, its times are long
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static int timer;
static atomic_int is_served;

static time_t now(clockid_t clock)
{
    struct timespec time;
    assert(clock_gettime(clock, &time) == 0);
    return time.tv_sec;
}

static void set(int flags, time_t first, time_t interval)
{
    const struct itimerspec new = { { .tv_sec = interval }, { .tv_sec = first } };
    assert(timerfd_settime(timer, flags, &new, NULL) == 0);
}

static uint64_t expirations(void)
{
    uint64_t n = 0;
    assert(read(timer, &n, sizeof n) == sizeof n);
    return n;
}

// An event loop with a tick every 100 seconds.
static void *serve(void *argument)
{
    struct epoll_event event = { .events = EPOLLIN };
    int queue = epoll_create1(0);
    assert(epoll_ctl(queue, EPOLL_CTL_ADD, timer, &event) == 0);
    for (int i = 0; i < 5; i++) {
        assert(epoll_wait(queue, &event, 1, -1) == 1);
        assert(expirations() >= 1);
    }
    is_served = 1;
    assert(close(queue) == 0);
    return argument;
}

static void *sleep_meanwhile(void *argument)
{
    while (!is_served)
        sleep(30);
    return argument;
}

int main(void)
{
    struct itimerspec left;
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    assert(timer >= 0 && timerfd_create(77, 0) == -1 && errno == EINVAL);
    struct pollfd input = { .fd = timer, .events = POLLIN };
    assert(poll(&input, 1, 1000) == 0);

    // Once, relative.
    time_t start = now(CLOCK_MONOTONIC);
    set(0, 1000, 0);
    assert(timerfd_gettime(timer, &left) == 0);
    assert(left.it_value.tv_sec >= 998 && left.it_value.tv_sec <= 1000);
    assert(poll(&input, 1, 500000) == 0);
    assert(expirations() == 1 && now(CLOCK_MONOTONIC) >= start + 1000 && now(CLOCK_MONOTONIC) < start + 1100);
    assert(timerfd_gettime(timer, &left) == 0 && left.it_value.tv_sec == 0 && left.it_value.tv_nsec == 0);

    // Again and again: what is not read is counted.
    set(0, 10, 10);
    assert(expirations() == 1 && expirations() == 1);
    sleep(35);
    assert(expirations() == 3);
    fd_set set_of_one;
    FD_ZERO(&set_of_one);
    FD_SET(timer, &set_of_one);
    assert(select(timer + 1, &set_of_one, NULL, NULL, NULL) == 1 && FD_ISSET(timer, &set_of_one));
    // Setting it forgets them.
    set(0, 0, 0);
    assert(poll(&input, 1, 50000) == 0);

    // At a time of day.
    assert(close(timer) == 0);
    timer = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
    uint64_t none;
    start = now(CLOCK_REALTIME);
    set(TFD_TIMER_ABSTIME, start + 3600, 0);
    assert(read(timer, &none, sizeof none) == -1 && errno == EAGAIN);
    assert(poll(&input, 1, -1) == 1 && input.revents == POLLIN && expirations() == 1);
    assert(now(CLOCK_REALTIME) >= start + 3600 && now(CLOCK_REALTIME) < start + 3700);
    const struct itimerspec bad = { .it_value.tv_nsec = 1000000000 };
    assert(timerfd_settime(timer, 0, &bad, NULL) == -1 && errno == EINVAL);

    // Each expiration is an edge, though nobody reads.
    struct epoll_event edge = { .events = EPOLLIN | EPOLLET };
    int queue = epoll_create1(0);
    set(0, 1, 0);
    assert(epoll_ctl(queue, EPOLL_CTL_ADD, timer, &edge) == 0);
    assert(epoll_wait(queue, &edge, 1, -1) == 1 && epoll_wait(queue, &edge, 1, 5000) == 0);
    set(0, 1, 0);
    assert(epoll_wait(queue, &edge, 1, -1) == 1 && close(queue) == 0);

    // A server beside a thread that sleeps.
    pthread_t threads[2];
    set(0, 100, 100);
    assert(pthread_create(&threads[0], NULL, serve, NULL) == 0);
    assert(pthread_create(&threads[1], NULL, sleep_meanwhile, NULL) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0);

    // A closed descriptor's timer is gone, whatever has its number now.
    assert(close(timer) == 0);
    int ends[2];
    assert(pipe(ends) == 0);
    input.fd = ends[0];
    assert(poll(&input, 1, 1000000) == 0);
    return 0;
}
