// Six clients of redis: each has keys of its own, and all of them count in one. They speak at the
// same time, since redis uses its threads for input and output only if several clients wait.
#include "../client.h"

#define CLIENTS 6
#define ROUNDS 3

static pthread_barrier_t together;

// redis prints its process id, which may have more digits in the next run.
pid_t getpid(void)
{
    return 12345;
}

static void client(int number)
{
    char request[128], reply[128];
    int fd = connected();
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&together);
        snprintf(request, sizeof request, "SET key%d value%d%d\r\n", number, number, round);
        ask(fd, request, "+OK\r\n");
        snprintf(request, sizeof request, "GET key%d\r\n", number);
        snprintf(reply, sizeof reply, "$7\r\nvalue%d%d\r\n", number, round);
        ask(fd, request, reply);
        snprintf(request, sizeof request, "RPUSH list%d %d\r\n", number, round);
        snprintf(reply, sizeof reply, ":%d\r\n", round + 1);
        ask(fd, request, reply);
        ask(fd, "INCRBY total 1\r\n", ":");
        // The number depends on the others.
        for (char byte = 0; byte != '\n';)
            if (read(fd, &byte, 1) != 1)
                fail("INCRBY", "no reply");
    }
    // A thread of the server frees it.
    snprintf(request, sizeof request, "UNLINK list%d\r\n", number);
    ask(fd, request, ":1\r\n");
    close(fd);
}

static void last(void)
{
    char reply[128];
    int fd = connected();
    snprintf(reply, sizeof reply, "$%d\r\n%d\r\n", CLIENTS * ROUNDS > 9 ? 2 : 1, CLIENTS * ROUNDS);
    ask(fd, "GET total\r\n", reply);
    say(fd, "SHUTDOWN NOSAVE\r\n");
}

__attribute__((constructor)) static void begin(void)
{
    pthread_barrier_init(&together, NULL, CLIENTS);
    start(CLIENTS, client, last);
}
