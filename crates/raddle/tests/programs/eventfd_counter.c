// About: eventfd_read waits for eventfd_write; preadv and pwritev on a file.
// Covers: eventfd_read, eventfd_write, preadv, preadv64, pwritev, pwritev64
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

static int request, reply;

static void *serve(void *argument)
{
    for (int i = 1; i <= 5; i++) {
        eventfd_t value;
        assert(eventfd_read(request, &value) == 0 && value == (eventfd_t)i);
        assert(eventfd_write(reply, 10 * value) == 0);
    }
    return argument;
}

int main(void)
{
    pthread_t thread;
    eventfd_t value;
    assert((request = eventfd(0, 0)) >= 0 && (reply = eventfd(0, 0)) >= 0);
    assert(pthread_create(&thread, NULL, serve, NULL) == 0);
    for (int i = 1; i <= 5; i++) {
        assert(eventfd_write(request, i) == 0);
        assert(eventfd_read(reply, &value) == 0 && value == (eventfd_t)(10 * i));
    }
    assert(pthread_join(thread, NULL) == 0);

    char name[] = "/tmp/raddle-vector-XXXXXX", first[2] = "ab", second[2] = "cd";
    struct iovec parts[2] = { { first, 2 }, { second, 2 } };
    int file = mkstemp(name);
    assert(file >= 0 && unlink(name) == 0);
    assert(pwritev(file, parts, 2, 0) == 4 && pwritev64(file, parts, 1, 4) == 2);
    assert(preadv(file, parts, 2, 2) == 4 && memcmp(first, "cd", 2) == 0 && memcmp(second, "ab", 2) == 0);
    assert(preadv64(file, parts, 1, 0) == 2 && memcmp(first, "ab", 2) == 0);
    return 0;
}
