// About: children that sleep, beside threads that sleep: a child that needs a short time ends before a long sleep
// does, and one that needs a long time is killed by a time-out.
// Covers: fork, waitpid, kill, usleep
// Outcome: exit 0
// External: a child that sleeps goes on by the clock, so what happens when is up to it
// Seeds: 2
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int has_ended;

static pid_t start(int us)
{
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        usleep(us);
        _exit(6);
    }
    return child;
}

static void *await(void *argument)
{
    int status;
    assert(waitpid(*(pid_t *)argument, &status, 0) > 0 && WEXITSTATUS(status) == 6);
    has_ended = 1;
    return argument;
}

int main(void)
{
    pthread_t thread;
    int status;
    pid_t child = start(20000);
    assert(pthread_create(&thread, NULL, await, &child) == 0);
    usleep(900000);
    assert(has_ended);
    assert(pthread_join(thread, NULL) == 0);

    child = start(20000000);
    for (int i = 0; i < 4; i++) {
        assert(waitpid(child, &status, WNOHANG) == 0);
        usleep(10000);
    }
    assert(kill(child, SIGKILL) == 0);
    assert(waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGKILL);
    return 0;
}
