// About: signals from another process while a thread waits for input: one thread is in sigwait, and then one has
// a handler.
// Covers: fork, recv, sigwait, waitpid
// Outcome: exit 0
// External: a child that sleeps and then sends a signal does so by the clock
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static sigset_t set;
static int pair[2];
static atomic_int n_handled;

static void *receive(void *argument)
{
    char byte;
    while (recv(pair[0], &byte, 1, 0) != 1)
        assert(errno == EINTR);
    return argument;
}

static void handler(int number)
{
    (void)number;
    n_handled++;
}

// Becomes a child that sends the signal, a moment later.
static pid_t send_later(int number)
{
    pid_t child = fork();
    if (child == 0) {
        usleep(20000);
        kill(getppid(), number);
        _exit(0);
    }
    return child;
}

int main(void)
{
    pthread_t thread;
    int number;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    assert(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    assert(signal(SIGUSR2, handler) == SIG_DFL);
    assert(pthread_create(&thread, NULL, receive, NULL) == 0);

    pid_t child = send_later(SIGUSR1);
    assert(sigwait(&set, &number) == 0 && number == SIGUSR1);
    assert(waitpid(child, NULL, 0) == child);

    child = send_later(SIGUSR2);
    while (n_handled == 0)
        pause();
    while (waitpid(child, NULL, 0) != child)
        assert(errno == EINTR);
    assert(send(pair[1], "x", 1, 0) == 1);
    assert(pthread_join(thread, NULL) == 0);
    return 0;
}
