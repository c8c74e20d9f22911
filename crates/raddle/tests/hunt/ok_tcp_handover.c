// Nothing is wrong: a server that listens in both IP families at all addresses, and a client that
// asks it by a connection in one of them, use the same variables without a lock. The server ends
// when the connection is closed.
// Hunt: clean
// Predicted: 0

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#define N_QUESTIONS 3

// The number of a descriptor.
enum { LISTENER = 20 };

static int question, answer, total;

static void *serve(void *argument)
{
    char byte;
    int connection = accept(LISTENER, NULL, NULL);
    assert(connection >= 0);
    while (read(connection, &byte, 1) == 1) {
        answer = question * 2;
        assert(write(connection, &byte, 1) == 1);
    }
    assert(total == 12);
    assert(close(connection) == 0);
    return argument;
}

int main(void)
{
    pthread_t thread;
    struct sockaddr_in6 all = { .sin6_family = AF_INET6 };
    struct sockaddr_in server = { .sin_family = AF_INET };
    socklen_t length = sizeof all;
    char byte = 'x';
    int sum = 0;

    if (dup2(socket(AF_INET6, SOCK_STREAM, 0), LISTENER) != LISTENER ||
        bind(LISTENER, (struct sockaddr *)&all, sizeof all) != 0)
        return 0; // there is no IPv6 here
    assert(getsockname(LISTENER, (struct sockaddr *)&all, &length) == 0 && listen(LISTENER, 1) == 0);
    pthread_create(&thread, NULL, serve, NULL);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    server.sin_port = all.sin6_port;
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert(connect(client, (struct sockaddr *)&server, sizeof server) == 0);
    for (int i = 1; i <= N_QUESTIONS; i++) {
        question = i;
        assert(write(client, &byte, 1) == 1 && read(client, &byte, 1) == 1);
        sum += answer;
    }
    total = sum;
    assert(close(client) == 0);
    pthread_join(thread, NULL);
    return 0;
}
