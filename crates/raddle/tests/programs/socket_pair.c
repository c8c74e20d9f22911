// About: socketpair, send, recv, sendmsg, recvmsg, MSG_DONTWAIT, shutdown, SO_RCVTIMEO.
// Covers: recv, recvmsg, send, sendmsg
// Outcome: exit 0
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

static int ends[2];

static void *echo(void *argument)
{
    char buffer[32];
    for (;;) {
        struct iovec part = { buffer, sizeof buffer };
        struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
        ssize_t n = recvmsg(ends[1], &message, 0);
        assert(n >= 0);
        if (n == 0)
            break;
        part.iov_len = n;
        assert(sendmsg(ends[1], &message, MSG_NOSIGNAL) == n);
    }
    return argument;
}

int main(void)
{
    pthread_t thread;
    char buffer[32];
    assert(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
    assert(recv(ends[0], buffer, sizeof buffer, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    struct timeval patience = { .tv_usec = 100000 };
    assert(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
    assert(recv(ends[0], buffer, sizeof buffer, 0) == -1 && errno == EAGAIN);
    patience.tv_usec = 0;
    assert(setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);

    assert(pthread_create(&thread, NULL, echo, NULL) == 0);
    for (int i = 1; i <= 10; i++) {
        memset(buffer, 'a' + i, sizeof buffer);
        assert(send(ends[0], buffer, i, 0) == i);
        memset(buffer, 0, sizeof buffer);
        assert(recv(ends[0], buffer, sizeof buffer, 0) == i);
        assert(buffer[0] == 'a' + i && buffer[i - 1] == 'a' + i && buffer[i] == 0);
    }
    assert(shutdown(ends[0], SHUT_WR) == 0);
    assert(pthread_join(thread, NULL) == 0);
    return 0;
}
