// About: read, pread, recv, recvfrom, poll and ppoll as _FORTIFY_SOURCE calls them: they wait as the plain
// functions do.
// Covers: __poll_chk, __ppoll_chk, __pread_chk, __pread64_chk, __read_chk, __recv_chk, __recvfrom_chk
// Outcome: exit 0
// Flags: -O2 -D_FORTIFY_SOURCE=2
#define _GNU_SOURCE
#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROUNDS = 4 };
static int pipe_ends[2], sockets[2], n_received;
// A length that the compiler does not know, so that the check is left to the call.
static volatile size_t one = 1;

static void *receive(void *argument)
{
    char buffer[8];
    for (int i = 0; i < ROUNDS; i++) {
        struct pollfd ready[1] = { { .fd = pipe_ends[0], .events = POLLIN } };
        assert(poll(ready, one, -1) == 1 && ready[0].revents == POLLIN);
        assert(read(pipe_ends[0], buffer, one) == 1 && buffer[0] == 'p');
        ready[0].fd = sockets[0];
        assert(ppoll(ready, one, NULL, NULL) == 1 && ready[0].revents == POLLIN);
        assert(recv(sockets[0], buffer, one, 0) == 1 && buffer[0] == 's');
        assert(recvfrom(sockets[0], buffer, one, 0, NULL, NULL) == 1 && buffer[0] == 't');
        assert(read(pipe_ends[0], buffer, one) == 1 && buffer[0] == 'q');
        n_received += 4;
    }
    return argument;
}

static void *send_all(void *argument)
{
    for (int i = 0; i < ROUNDS; i++) {
        assert(write(pipe_ends[1], "p", 1) == 1);
        assert(send(sockets[1], "st", 2, 0) == 2);
        assert(write(pipe_ends[1], "q", 1) == 1);
    }
    return argument;
}

int main(void)
{
    assert(pipe(pipe_ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    pthread_t threads[2];
    assert(pthread_create(&threads[0], NULL, receive, NULL) == 0);
    assert(pthread_create(&threads[1], NULL, send_all, NULL) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_received == 4 * ROUNDS);

    char name[] = "/tmp/raddle-fortified-XXXXXX", buffer[8];
    int file = mkstemp(name);
    assert(file >= 0 && unlink(name) == 0 && write(file, "abc", 3) == 3);
    assert(pread(file, buffer, one, 1) == 1 && buffer[0] == 'b');
    assert(pread64(file, buffer, one, 2) == 1 && buffer[0] == 'c');
    return 0;
}
