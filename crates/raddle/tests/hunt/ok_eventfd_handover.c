// Nothing is wrong: a loop that waits by epoll is woken by an event counter, which it does not
// always read, as the wakers of event loops do; a second counter, used through a duplicate, tells
// that the job is done.
// Hunt: clean
// Predicted: 0

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define N_JOBS 3

// The numbers of descriptors.
enum { SET = 20, WAKE, DONE, DONE_TOO };

static int job, result;

static void *loop(void *argument)
{
    for (int i = 1; i <= N_JOBS; i++) {
        struct epoll_event event;
        assert(epoll_wait(SET, &event, 1, -1) == 1 && event.data.u32 == 7);
        result = job * 10;
        assert(eventfd_write(DONE, 1) == 0);
    }
    return argument;
}

int main(void)
{
    pthread_t thread;
    struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u32 = 7 };

    assert(dup2(epoll_create1(0), SET) == SET);
    assert(dup2(eventfd(0, EFD_NONBLOCK), WAKE) == WAKE);
    assert(dup2(eventfd(0, 0), DONE) == DONE && dup2(DONE, DONE_TOO) == DONE_TOO);
    assert(epoll_ctl(SET, EPOLL_CTL_ADD, WAKE, &event) == 0);
    pthread_create(&thread, NULL, loop, NULL);
    for (int i = 1; i <= N_JOBS; i++) {
        uint64_t n = 1;
        job = i;
        assert(write(WAKE, &n, sizeof n) == sizeof n);
        assert(read(DONE_TOO, &n, sizeof n) == sizeof n && n == 1);
        assert(result == i * 10);
    }
    pthread_join(thread, NULL);
    return 0;
}
