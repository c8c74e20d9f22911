// About: bytes between threads, and what they order: a pipe through duplicates, a pair of sockets that is shut
// down, a connection to a listener, datagrams, an epoll set. What a thread receives is there.
// Covers: accept4, close, dup, dup2, dup3, epoll_ctl, epoll_wait, listen, sendmmsg, shutdown, socketpair
// Covers: Send, Receive
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int ends[2], pair[2], listener, set;
static struct sockaddr_in address = { .sin_family = AF_INET };
static int to_pipe, to_pair, to_server, by_set;

static void *send_all(void *argument)
{
    to_pipe = 1;
    assert(write(ends[1], "x", 1) == 1 && close(ends[1]) == 0);

    to_pair = 2;
    struct iovec part = { "yz", 2 };
    struct mmsghdr messages[2] = { { .msg_hdr = { .msg_iov = &part, .msg_iovlen = 1 } },
                                   { .msg_hdr = { .msg_iov = &part, .msg_iovlen = 1 } } };
    assert(sendmmsg(pair[0], messages, 2, 0) == 2 && messages[1].msg_len == 2);
    assert(shutdown(pair[0], SHUT_WR) == 0);

    int client = socket(AF_INET, SOCK_STREAM, 0);
    to_server = 3;
    assert(connect(client, (struct sockaddr *)&address, sizeof address) == 0);
    char byte;
    assert(recv(client, &byte, 1, 0) == 1 && by_set == 4);
    assert(close(client) == 0);
    return argument;
}

int main(void)
{
    pthread_t thread;
    char bytes[8];
    socklen_t length = sizeof address;
    assert(pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    int copy = dup(ends[0]), other = dup2(copy, 30), third = dup3(other, 31, O_CLOEXEC);
    assert(copy > 2 && other == 30 && third == 31 && close(copy) == 0 && close(other) == 0);
    assert(close(copy) == -1 && errno == EBADF && dup2(copy, 32) == -1 && errno == EBADF);
    assert(dup2(third, third) == third);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert(bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
    assert(getsockname(listener, (struct sockaddr *)&address, &length) == 0 && listen(listener, 1) == 0);
    set = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = &listener };
    assert(epoll_ctl(set, EPOLL_CTL_ADD, listener, &event) == 0);
    assert(epoll_ctl(set, EPOLL_CTL_ADD, listener, &event) == -1 && errno == EEXIST);
    assert(pthread_create(&thread, NULL, send_all, NULL) == 0);

    assert(read(third, bytes, 1) == 1 && to_pipe == 1 && read(third, bytes, 1) == 0);
    assert(recv(pair[1], bytes, 4, MSG_WAITALL) == 4 && to_pair == 2 && recv(pair[1], bytes, 1, 0) == 0);
    assert(epoll_wait(set, &event, 1, -1) == 1 && event.data.ptr == &listener && to_server == 3);
    int server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert(server >= 0 && epoll_ctl(set, EPOLL_CTL_DEL, listener, NULL) == 0);
    by_set = 4;
    assert(send(server, "w", 1, 0) == 1);
    assert(recv(server, bytes, 1, 0) == 0);
    assert(pthread_join(thread, NULL) == 0);
    assert(close(server) == 0 && close(listener) == 0 && close(set) == 0);
    return 0;
}
