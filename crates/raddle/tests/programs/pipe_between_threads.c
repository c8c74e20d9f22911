// About: pipe, read that waits for write, writev, readv, end of file, EPIPE.
// Covers: read, readv, write, writev
// Outcome: exit 0
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int request[2], reply[2];

static void *serve(void *argument)
{
    int number;
    while (read(request[0], &number, sizeof number) == sizeof number) {
        int square = number * number;
        struct iovec parts[2] = { { &number, sizeof number }, { &square, sizeof square } };
        assert(writev(reply[1], parts, 2) == sizeof number + sizeof square);
    }
    assert(close(reply[1]) == 0);
    return argument;
}

int main(void)
{
    pthread_t thread;
    assert(pipe(request) == 0 && pipe(reply) == 0);
    assert(pthread_create(&thread, NULL, serve, NULL) == 0);
    for (int i = 0; i < 10; i++) {
        int number = 0, square = 0;
        struct iovec parts[2] = { { &number, sizeof number }, { &square, sizeof square } };
        assert(write(request[1], &i, sizeof i) == sizeof i);
        assert(readv(reply[0], parts, 2) == sizeof number + sizeof square);
        assert(number == i && square == i * i);
    }
    assert(close(request[1]) == 0);
    char byte;
    assert(read(reply[0], &byte, 1) == 0);
    assert(pthread_join(thread, NULL) == 0);

    signal(SIGPIPE, SIG_IGN);
    assert(close(request[0]) == 0 && pipe(request) == 0 && close(request[0]) == 0);
    assert(write(request[1], "x", 1) == -1 && errno == EPIPE);
    return 0;
}
