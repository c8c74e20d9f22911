// About: a child that is polled by WNOHANG and kill(child, 0) beside a thread that works, with a time-out that must
// not expire; its pipe is polled, and read without blocking.
// Covers: fork, waitpid, kill, poll, fcntl
// Outcome: exit 0
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_work, n_polls, end[2];

static void *work(void *argument)
{
    for (int i = 0; i < 300; i++) {
        pthread_mutex_lock(&lock);
        n_work++;
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

static void *poll_child(void *argument)
{
    pid_t child = *(pid_t *)argument;
    int status;
    for (int i = 0; i < 50; i++) {
        pid_t seen = waitpid(child, &status, WNOHANG);
        pthread_mutex_lock(&lock);
        n_polls++;
        pthread_mutex_unlock(&lock);
        if (seen == child) {
            assert(WEXITSTATUS(status) == 3);
            assert(kill(child, 0) == -1 && errno == ESRCH);
            return NULL;
        }
        assert(seen == 0 && kill(child, 0) == 0);
        usleep(100000);
    }
    kill(child, SIGKILL);
    return argument;
}

static void *poll_pipe(void *argument)
{
    char bytes[8];
    int n = 0;
    struct pollfd ready = { .fd = end[0], .events = POLLIN };
    assert(fcntl(end[0], F_SETFL, O_NONBLOCK) == 0);
    for (;;) {
        assert(poll(&ready, 1, 1000) == 1);
        ssize_t more = read(end[0], bytes, sizeof bytes);
        pthread_mutex_lock(&lock);
        n_polls++;
        pthread_mutex_unlock(&lock);
        if (more == 0)
            break;
        assert(more > 0 || errno == EAGAIN);
        n += more > 0 ? more : 0;
    }
    assert(n == 50);
    return argument;
}

int main(void)
{
    pthread_t threads[3];
    void *result;
    assert(pipe(end) == 0);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        for (int i = 0; i < 50; i++) {
            for (volatile int j = 0; j < 1000; j++)
                ;
            assert(write(end[1], "x", 1) == 1);
        }
        _exit(3);
    }
    assert(close(end[1]) == 0);
    assert(pthread_create(&threads[0], NULL, poll_child, &child) == 0);
    assert(pthread_create(&threads[1], NULL, poll_pipe, NULL) == 0);
    assert(pthread_create(&threads[2], NULL, work, NULL) == 0);
    assert(pthread_join(threads[0], &result) == 0 && result == NULL);
    for (int i = 1; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    return 0;
}
