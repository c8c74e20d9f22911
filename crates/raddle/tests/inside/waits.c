/* All threads wait for a descriptor; the argument says for which. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <assert.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static int here = -1, there = -1;

static void make_pipe(void)
{
    int ends[2];
    assert(pipe(ends) == 0);
    here = ends[0];
    there = ends[1];
}

static void make_pair(int kind)
{
    int ends[2];
    assert(socketpair(AF_UNIX, kind, 0, ends) == 0);
    here = ends[0];
    there = ends[1];
}

static void fill(void)
{
    char bytes[4096] = { 0 };
    assert(fcntl(here, F_SETPIPE_SZ, 4096) == 4096);
    assert(write(there, bytes, sizeof bytes) == sizeof bytes);
}

static void *write_one(void *argument)
{
    assert(write(there, "x", 1) == 1);
    return argument;
}

static void *read_one(void *argument)
{
    uint64_t bytes;
    assert(read(here, &bytes, sizeof bytes) > 0);
    return argument;
}

static void *poll_both(void *argument)
{
    struct pollfd both[2] = { { here, POLLIN, 0 }, { -1, POLLIN, 0 } };
    assert(poll(both, 2, -1) == 1);
    return argument;
}

static void *accept_one(void *argument)
{
    assert(accept(here, NULL, NULL) >= 0);
    return argument;
}

static void listen_at_loopback(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    here = socket(AF_INET, SOCK_STREAM, 0);
    assert(bind(here, (struct sockaddr *)&address, sizeof address) == 0 && listen(here, 1) == 0);
}

/* Sends a descriptor to itself. */
static void pass_on(int passed)
{
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr header;
    } control = { .bytes = { 0 } };
    char byte = 'x';
    struct iovec part = { &byte, 1 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    int ends[2];

    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.header), &passed, sizeof passed);
    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    assert(sendmsg(ends[0], &message, 0) == 1);
}

static void handle(int number)
{
    (void)number;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    void *(*start)(void *) = read_one;
    pthread_t threads[2];

    make_pipe();
    if (strcmp(what, "pipe") == 0) {
    } else if (strcmp(what, "polled") == 0) {
        start = poll_both;
    } else if (strcmp(what, "full") == 0) {
        fill();
        start = write_one;
    } else if (strcmp(what, "pair") == 0) {
        make_pair(SOCK_STREAM);
    } else if (strcmp(what, "event") == 0) {
        here = eventfd(0, 0);
    } else if (strcmp(what, "datagrams") == 0) {
        make_pair(SOCK_DGRAM);
    } else if (strcmp(what, "stdin") == 0) {
        here = STDIN_FILENO;
    } else if (strcmp(what, "fifo") == 0) {
        unlink("fifo");
        assert(mkfifo("fifo", 0600) == 0);
        here = open("fifo", O_RDWR);
    } else if (strcmp(what, "listener") == 0) {
        listen_at_loopback();
        start = accept_one;
    } else if (strcmp(what, "child") == 0) {
        if (fork() == 0) {
            sleep(100);
            _exit(0);
        }
    } else if (strcmp(what, "background") == 0) {
        assert(system("sleep 100 > /dev/null 2>&1 &") == 0);
    } else if (strcmp(what, "passed") == 0) {
        pass_on(there);
    } else if (strcmp(what, "handler") == 0) {
        signal(SIGUSR1, handle);
    } else if (strcmp(what, "mixed") == 0) {
        pthread_create(&threads[0], NULL, poll_both, NULL);
        here = STDIN_FILENO;
    } else if (strcmp(what, "epoll") == 0) {
        struct epoll_event event = { .events = EPOLLIN };
        int set = epoll_create1(0);
        assert(epoll_ctl(set, EPOLL_CTL_ADD, here, &event) == 0);
        return epoll_wait(set, &event, 1, -1);
    } else {
        fprintf(stderr, "%s?\n", what);
        return 2;
    }
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, start, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
