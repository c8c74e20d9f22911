// Nothing is wrong: a request goes to a server thread and its answer comes back through a pair of
// sockets; both use the same structure without a lock. The server ends when it is shut out.
// Hunt: clean
// Predicted: 0

#include <assert.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#define N_REQUESTS 4

static int ends[2];
static struct {
    int question, answer;
} shared;
static int n_served;

static void *serve(void *argument)
{
    char byte;
    while (recv(ends[1], &byte, 1, 0) == 1) {
        shared.answer = shared.question * shared.question;
        n_served++;
        assert(send(ends[1], &byte, 1, 0) == 1);
    }
    assert(n_served == N_REQUESTS);
    assert(shared.question == -1);
    return argument;
}

int main(void)
{
    pthread_t thread;
    char byte = 'x';

    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    pthread_create(&thread, NULL, serve, NULL);
    for (int i = 1; i <= N_REQUESTS; i++) {
        shared.question = i;
        assert(send(ends[0], &byte, 1, 0) == 1);
        assert(recv(ends[0], &byte, 1, 0) == 1);
        assert(shared.answer == i * i && n_served == i);
    }
    shared.question = -1;
    assert(shutdown(ends[0], SHUT_WR) == 0);
    pthread_join(thread, NULL);
    return 0;
}
