// About: sendto, recvfrom on unix datagram sockets with abstract names; a full queue that blocks.
// Covers: recvfrom, sendto
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MESSAGES = 400 };

static struct sockaddr_un address = { .sun_family = AF_UNIX };
static socklen_t address_bytes;

static void *shout(void *argument)
{
    int out = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert(out >= 0);
    for (int i = 0; i < MESSAGES; i++)
        assert(sendto(out, &i, sizeof i, 0, (struct sockaddr *)&address, address_bytes) == sizeof i);
    assert(close(out) == 0);
    return argument;
}

int main(void)
{
    int in = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert(in >= 0);
    int n = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "raddle-datagrams-%d", getpid());
    address_bytes = offsetof(struct sockaddr_un, sun_path) + 1 + n;
    assert(bind(in, (struct sockaddr *)&address, address_bytes) == 0);
    pthread_t thread;
    assert(pthread_create(&thread, NULL, shout, NULL) == 0);
    for (int i = 0; i < MESSAGES; i++) {
        int number = -1;
        struct sockaddr_un from;
        socklen_t from_bytes = sizeof from;
        ssize_t got = recvfrom(in, &number, sizeof number, 0, (struct sockaddr *)&from, &from_bytes);
        assert(got == sizeof number && number == i);
    }
    assert(pthread_join(thread, NULL) == 0);
    assert(close(in) == 0);
    return 0;
}
