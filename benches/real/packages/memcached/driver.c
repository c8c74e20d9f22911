// Three clients of memcached: each has keys of its own, and all of them count in one.
#include "../client.h"

#define CLIENTS 3
#define ROUNDS 3

static void client(int number)
{
    char request[128], reply[128];
    int fd = connected();
    say(fd, "add total 0 0 1\r\n0\r\n");
    // Another client may have been first.
    char first[16] = {0};
    for (size_t got = 0; got == 0 || first[got - 1] != '\n'; got++)
        if (got == sizeof first - 1 || read(fd, first + got, 1) != 1)
            fail("add", "no reply");
    if (strcmp(first, "STORED\r\n") != 0 && strcmp(first, "NOT_STORED\r\n") != 0)
        fail("add", first);

    for (int round = 0; round < ROUNDS; round++) {
        snprintf(request, sizeof request, "set key%d 0 0 7\r\nvalue%d%d\r\n", number, number, round);
        ask(fd, request, "STORED\r\n");
        snprintf(request, sizeof request, "get key%d\r\n", number);
        snprintf(reply, sizeof reply, "VALUE key%d 0 7\r\nvalue%d%d\r\nEND\r\n", number, number, round);
        ask(fd, request, reply);
        ask(fd, "incr total 1 noreply\r\nmn\r\n", "MN\r\n");
    }
    snprintf(request, sizeof request, "delete key%d\r\n", number);
    ask(fd, request, "DELETED\r\n");
    snprintf(request, sizeof request, "get key%d\r\n", number);
    ask(fd, request, "END\r\n");
    close(fd);
}

static void last(void)
{
    char reply[128];
    int fd = connected();
    snprintf(reply, sizeof reply, "VALUE total 0 %d\r\n%d\r\nEND\r\n", CLIENTS * ROUNDS > 9 ? 2 : 1, CLIENTS * ROUNDS);
    ask(fd, "get total\r\n", reply);
    unlink(SOCKET);
    say(fd, "shutdown\r\n");
}

__attribute__((constructor)) static void begin(void)
{
    start(CLIENTS, client, last);
}
