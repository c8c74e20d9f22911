// About: socket, bind, listen, accept, accept4, connect over loopback TCP; a server with a thread
// per connection.
// Covers: accept, accept4, connect
// Outcome: exit 0
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS = 3 };

static struct sockaddr_in address;
static int listener;

static void *serve_one(void *argument)
{
    int connection = (int)(intptr_t)argument;
    uint32_t number;
    assert(recv(connection, &number, sizeof number, MSG_WAITALL) == sizeof number);
    number = htonl(ntohl(number) + 1);
    assert(send(connection, &number, sizeof number, 0) == sizeof number);
    assert(close(connection) == 0);
    return NULL;
}

static void *serve(void *argument)
{
    pthread_t threads[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        int connection = i ? accept(listener, NULL, NULL) : accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        assert(connection >= 0);
        assert(pthread_create(&threads[i], NULL, serve_one, (void *)(intptr_t)connection) == 0);
    }
    for (int i = 0; i < CLIENTS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    return argument;
}

static void *ask(void *argument)
{
    uint32_t number = htonl((uint32_t)(intptr_t)argument), answer;
    int connection = socket(AF_INET, SOCK_STREAM, 0);
    assert(connection >= 0);
    assert(connect(connection, (struct sockaddr *)&address, sizeof address) == 0);
    assert(write(connection, &number, sizeof number) == sizeof number);
    assert(recv(connection, &answer, sizeof answer, MSG_WAITALL) == sizeof answer);
    assert(ntohl(answer) == ntohl(number) + 1);
    assert(read(connection, &answer, 1) == 0);
    assert(close(connection) == 0);
    return NULL;
}

int main(void)
{
    pthread_t server, clients[CLIENTS];
    socklen_t length = sizeof address;
    address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    listener = socket(AF_INET, SOCK_STREAM, 0);
    assert(listener >= 0 && bind(listener, (struct sockaddr *)&address, length) == 0);
    assert(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    assert(listen(listener, CLIENTS) == 0);
    assert(pthread_create(&server, NULL, serve, NULL) == 0);
    for (int i = 0; i < CLIENTS; i++)
        assert(pthread_create(&clients[i], NULL, ask, (void *)(intptr_t)(100 + i)) == 0);
    for (int i = 0; i < CLIENTS; i++)
        assert(pthread_join(clients[i], NULL) == 0);
    assert(pthread_join(server, NULL) == 0);
    return 0;
}
