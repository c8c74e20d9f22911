// About: a SIGCHLD handler that collects children while threads work; then SIGCHLD that is blocked and waited for.
// Covers: fork, sigaction, waitpid, sigwait, pthread_sigmask, Signal
// Outcome: exit 0
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int n_collected, statuses;
static int n_work;

static void collect(int number)
{
    int status, before = errno;
    (void)number;
    while (waitpid(-1, &status, WNOHANG) > 0) {
        statuses += WEXITSTATUS(status);
        n_collected++;
    }
    errno = before;
}

static void *work(void *argument)
{
    for (int i = 0; i < 150; i++) {
        pthread_mutex_lock(&lock);
        n_work++;
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

static void start(int status)
{
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        for (volatile int i = 0; i < 20000 * status; i++)
            ;
        _exit(status);
    }
}

int main(void)
{
    const struct sigaction action = { .sa_handler = collect, .sa_flags = SA_RESTART | SA_NOCLDSTOP };
    pthread_t threads[2];
    assert(sigaction(SIGCHLD, &action, NULL) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int status = 1; status <= 3; status++)
        start(status);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    while (n_collected < 3)
        usleep(500);
    assert(statuses == 6);

    sigset_t set;
    int number, status;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    assert(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    assert(pthread_create(&threads[0], NULL, work, NULL) == 0);
    start(4);
    assert(sigwait(&set, &number) == 0 && number == SIGCHLD);
    assert(waitpid(-1, &status, WNOHANG) > 0 && WEXITSTATUS(status) == 4);
    assert(pthread_join(threads[0], NULL) == 0);
    return 0;
}
