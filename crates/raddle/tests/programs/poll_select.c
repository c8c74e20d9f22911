// About: poll, ppoll, select, pselect: with a timeout that passes, and with input that comes.
// Covers: poll, ppoll, pselect, select
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

static int ends[2], go[2];

static long long now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

static void *feed(void *argument)
{
    char byte;
    while (read(go[0], &byte, 1) == 1)
        assert(write(ends[1], &byte, 1) == 1);
    return argument;
}

static void timeouts(void)
{
    struct pollfd input = { .fd = ends[0], .events = POLLIN };
    const struct timespec third = { .tv_nsec = 300000000 };
    struct timeval third_too = { .tv_usec = 300000 };
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    long long start = now_ms();
    assert(poll(&input, 1, 0) == 0 && poll(&input, 1, 300) == 0);
    assert(ppoll(&input, 1, &third, NULL) == 0);
    assert(now_ms() - start >= 599);
    assert(select(ends[0] + 1, &set, NULL, NULL, &third_too) == 0 && !FD_ISSET(ends[0], &set));
    FD_SET(ends[0], &set);
    assert(pselect(ends[0] + 1, &set, NULL, NULL, &third, NULL) == 0);
    assert(poll(NULL, 0, 300) == 0);
    assert(now_ms() - start >= 1499);
}

int main(void)
{
    pthread_t thread;
    char byte;
    fd_set set;
    struct pollfd input;
    assert(pipe(ends) == 0 && pipe(go) == 0);
    timeouts();
    input = (struct pollfd){ .fd = ends[0], .events = POLLIN };
    assert(pthread_create(&thread, NULL, feed, NULL) == 0);
    for (int i = 0; i < 4; i++) {
        assert(write(go[1], "x", 1) == 1);
        FD_ZERO(&set);
        FD_SET(ends[0], &set);
        if (i % 2 == 0)
            assert(poll(&input, 1, -1) == 1 && (input.revents & POLLIN));
        else
            assert(select(ends[0] + 1, &set, NULL, NULL, NULL) == 1 && FD_ISSET(ends[0], &set));
        assert(read(ends[0], &byte, 1) == 1);
    }
    assert(close(go[1]) == 0 && pthread_join(thread, NULL) == 0);
    return 0;
}
