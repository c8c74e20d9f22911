// Clients of a server, as threads inside its process: what drivers for servers share.
//
// A driver is preloaded. It moves the process to a directory of its own, so that several can run at
// the same time, and starts its clients when the server starts. A client that gets a wrong reply
// ends the process with status 1.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

// Where the server listens, in the directory of the process.
#define SOCKET "socket"

static void fail(const char *what, const char *detail)
{
    fprintf(stderr, "driver: %s: %s\n", what, detail);
    _exit(1);
}

// Moves to a directory of its own, whose name is as long in every run. An earlier process of the
// same id may have left it.
static void move(void)
{
    char name[32];
    snprintf(name, sizeof name, "server-%010d", (int)syscall(SYS_getpid));
    if ((mkdir(name, 0777) != 0 && errno != EEXIST) || chdir(name) != 0)
        fail(name, strerror(errno));
    unlink(SOCKET);
}

// A connection to the server, which may not listen yet.
static int connected(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SOCKET};
    for (int n = 0; n < 10000; n++) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (fd < 0)
            fail("socket", strerror(errno));
        if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
            return fd;
        close(fd);
        usleep(1000);
    }
    fail("connect", "the server does not listen");
    return -1;
}

static void say(int fd, const char *request)
{
    size_t length = strlen(request), sent = 0;
    while (sent < length) {
        ssize_t n = write(fd, request + sent, length - sent);
        if (n <= 0)
            fail("write", strerror(errno));
        sent += (size_t)n;
    }
}

// Reads as many bytes as are expected, which have to be those.
static void hear(int fd, const char *request, const char *expected)
{
    char reply[1024];
    size_t length = strlen(expected), got = 0;
    if (length >= sizeof reply)
        fail("expected reply", "too long");
    while (got < length) {
        ssize_t n = read(fd, reply + got, length - got);
        if (n <= 0)
            fail(request, n == 0 ? "the server hung up" : strerror(errno));
        got += (size_t)n;
    }
    reply[got] = 0;
    if (strcmp(reply, expected) != 0) {
        fprintf(stderr, "driver: %s", request);
        fail("wrong reply", reply);
    }
}

static void ask(int fd, const char *request, const char *expected)
{
    say(fd, request);
    hear(fd, request, expected);
}

// Starts `clients` threads of `client`, then `last` when all of them have ended.
static void (*client_of)(int number);
static void (*last_of)(void);
static int n_clients;

static void *one_client(void *number)
{
    client_of((int)(long)number);
    return NULL;
}

static void *all_clients(void *unused)
{
    pthread_t threads[16];
    for (long n = 0; n < n_clients; n++)
        if (pthread_create(&threads[n], NULL, one_client, (void *)n) != 0)
            fail("pthread_create", strerror(errno));
    for (int n = 0; n < n_clients; n++)
        pthread_join(threads[n], NULL);
    last_of();
    return unused;
}

static void start(int clients, void (*client)(int number), void (*last)(void))
{
    pthread_t thread;
    unsetenv("LD_PRELOAD");
    move();
    n_clients = clients;
    client_of = client;
    last_of = last;
    if (pthread_create(&thread, NULL, all_clients, NULL) != 0 || pthread_detach(thread) != 0)
        fail("pthread_create", strerror(errno));
}
