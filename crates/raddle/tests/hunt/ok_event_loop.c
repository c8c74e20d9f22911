// Nothing is wrong: an event loop waits for a periodic timer descriptor, for jobs announced by an
// event counter, and for a socket, all in one epoll set; a time limit of its own makes it look
// around now and then.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { JOBS = 4, TICKS = 5 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int jobs[JOBS], n_jobs;
static int wake, timer, control[2];

static void watch(int set, int descriptor)
{
    struct epoll_event event = { .events = EPOLLIN, .data.fd = descriptor };
    assert(epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) == 0);
}

static void *submit(void *argument)
{
    for (int i = 1; i <= JOBS; i++) {
        pthread_mutex_lock(&lock);
        jobs[n_jobs++] = i;
        pthread_mutex_unlock(&lock);
        assert(eventfd_write(wake, 1) == 0);
        usleep(30 * 1000);
    }
    assert(send(control[1], "q", 1, 0) == 1);
    return argument;
}

int main(void)
{
    struct itimerspec period = { { 0, 50 * 1000 * 1000 }, { 0, 50 * 1000 * 1000 } };
    struct epoll_event events[4];
    int set = epoll_create1(EPOLL_CLOEXEC);
    int sum = 0, quits = 0;
    uint64_t n_ticks = 0;
    pthread_t thread;

    wake = eventfd(0, EFD_NONBLOCK);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, control) == 0);
    assert(timerfd_settime(timer, 0, &period, NULL) == 0);
    watch(set, wake);
    watch(set, timer);
    watch(set, control[0]);
    pthread_create(&thread, NULL, submit, NULL);
    while (!quits || n_ticks < TICKS) {
        int n = epoll_wait(set, events, 4, 1000);
        assert(n >= 0);
        for (int i = 0; i < n; i++) {
            uint64_t value;
            char byte;
            if (events[i].data.fd == timer) {
                if (read(timer, &value, sizeof value) == sizeof value)
                    n_ticks += value;
            } else if (events[i].data.fd == wake) {
                assert(eventfd_read(wake, &value) == 0);
                pthread_mutex_lock(&lock);
                while (n_jobs > 0)
                    sum += jobs[--n_jobs];
                pthread_mutex_unlock(&lock);
            } else {
                assert(recv(control[0], &byte, 1, 0) == 1 && byte == 'q');
                quits = 1;
            }
        }
    }
    pthread_join(thread, NULL);
    assert(sum == 1 + 2 + 3 + 4);
    close(set);
    return 0;
}
