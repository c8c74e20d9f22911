// About: epoll_create1, epoll_ctl, epoll_wait, epoll_pwait, eventfd, timerfd.
// Covers: epoll_pwait, epoll_wait
// Outcome: exit 0
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { EVENTS = 20 };

static int wake, done;

static void *post(void *argument)
{
    for (int i = 0; i < EVENTS; i++)
        assert(eventfd_write(wake, 1) == 0);
    return argument;
}

int main(void)
{
    pthread_t thread;
    struct epoll_event events[4];
    uint64_t count, total = 0;
    int queue = epoll_create1(EPOLL_CLOEXEC);
    wake = eventfd(0, EFD_NONBLOCK);
    done = eventfd(0, EFD_SEMAPHORE);
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    assert(queue >= 0 && wake >= 0 && done >= 0 && timer >= 0);
    assert(read(wake, &count, sizeof count) == -1 && errno == EAGAIN);
    struct epoll_event input = { .events = EPOLLIN, .data.fd = wake };
    assert(epoll_ctl(queue, EPOLL_CTL_ADD, wake, &input) == 0);
    assert(epoll_wait(queue, events, 4, 0) == 0);
    assert(epoll_wait(queue, events, 4, 200) == 0);
    assert(epoll_pwait(queue, events, 4, 200, NULL) == 0);

    assert(pthread_create(&thread, NULL, post, NULL) == 0);
    while (total < EVENTS) {
        assert(epoll_wait(queue, events, 4, -1) == 1 && events[0].data.fd == wake);
        assert(read(wake, &count, sizeof count) == sizeof count && count > 0);
        total += count;
    }
    assert(total == EVENTS);
    assert(pthread_join(thread, NULL) == 0);

    // A counter of two, taken one by one.
    assert(eventfd_write(done, 2) == 0);
    assert(eventfd_read(done, &count) == 0 && count == 1);
    assert(eventfd_read(done, &count) == 0 && count == 1);

    const struct itimerspec in_a_while = { .it_value.tv_nsec = 1000000 };
    input.data.fd = timer;
    assert(epoll_ctl(queue, EPOLL_CTL_ADD, timer, &input) == 0);
    assert(timerfd_settime(timer, 0, &in_a_while, NULL) == 0);
    assert(epoll_wait(queue, events, 4, -1) == 1 && events[0].data.fd == timer);
    assert(read(timer, &count, sizeof count) == sizeof count && count == 1);
    return 0;
}
