// About: pthread_cancel of threads that wait for a child process in wait, waitpid, wait4, waitid; a handler that
// interrupts such a wait.
// Covers: fork, pthread_cancel, pthread_kill, wait, wait4, waitid, waitpid
// Outcome: exit 0
// Free: no, a thread that blocks in the kernel is cancelled under control only
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child;
static atomic_int n_begun, is_interrupted;

static void *in_wait(void *argument)
{
    n_begun++;
    wait(NULL);
    return argument;
}

static void *in_waitpid(void *argument)
{
    n_begun++;
    waitpid(child, NULL, 0);
    return argument;
}

static void *in_wait4(void *argument)
{
    n_begun++;
    wait4(child, NULL, 0, NULL);
    return argument;
}

static void *in_waitid(void *argument)
{
    siginfo_t info;
    n_begun++;
    waitid(P_PID, (id_t)child, &info, WEXITED);
    return argument;
}

static void *be_interrupted(void *argument)
{
    n_begun++;
    assert(waitpid(child, NULL, 0) == -1 && errno == EINTR);
    is_interrupted = 1;
    return argument;
}

static void handler(int number)
{
    (void)number;
}

int main(void)
{
    void *(*const starts[])(void *) = { in_wait, in_waitpid, in_wait4, in_waitid };
    pthread_t threads[4], other;
    int end[2], status;
    void *result;
    char byte;
    assert(pipe(end) == 0);
    child = fork();
    if (child == 0) {
        close(end[1]);
        (void)!read(end[0], &byte, 1);
        _exit(7);
    }
    for (int i = 0; i < 4; i++)
        assert(pthread_create(&threads[i], NULL, starts[i], NULL) == 0);
    while (n_begun < 4)
        usleep(1000);
    for (int i = 0; i < 4; i++)
        assert(pthread_cancel(threads[i]) == 0);
    for (int i = 0; i < 4; i++)
        assert(pthread_join(threads[i], &result) == 0 && result == PTHREAD_CANCELED);

    const struct sigaction action = { .sa_handler = handler };
    assert(sigaction(SIGUSR1, &action, NULL) == 0);
    assert(pthread_create(&other, NULL, be_interrupted, NULL) == 0);
    while (n_begun < 5)
        usleep(1000);
    while (!is_interrupted) {
        assert(pthread_kill(other, SIGUSR1) == 0);
        usleep(1000);
    }
    assert(pthread_join(other, NULL) == 0);

    siginfo_t info;
    assert(waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0);
    assert(close(end[1]) == 0);
    assert(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) == 0 && info.si_status == 7);
    assert(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    assert(waitid(P_PID, (id_t)child, &info, WEXITED) == -1 && errno == ECHILD);
    return 0;
}
