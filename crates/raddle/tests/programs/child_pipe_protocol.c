// About: two threads that talk to a forked child by pipes, one request at a time, beside a thread that works. The
// child answers in pieces of its own.
// Covers: fork, read, write, waitpid, Fork
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int to_child[2], from_child[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_answers, n_work;

/* Answers each byte by as many bytes, written one by one. */
static void child(void)
{
    unsigned char n;
    close(to_child[1]);
    close(from_child[0]);
    while (read(to_child[0], &n, 1) == 1)
        for (int i = 0; i < n; i++)
            assert(write(from_child[1], "x", 1) == 1);
    _exit(5);
}

static void *ask(void *argument)
{
    for (unsigned char n = 1; n < 8; n++) {
        char answer[16];
        int got = 0;
        pthread_mutex_lock(&lock);
        assert(write(to_child[1], &n, 1) == 1);
        while (got < n) {
            ssize_t more = read(from_child[0], answer, sizeof answer);
            assert(more > 0);
            got += more;
            n_answers++;
        }
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

static void *work(void *argument)
{
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&lock);
        n_work++;
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

int main(void)
{
    void *(*const starts[])(void *) = { ask, ask, work };
    pthread_t threads[3];
    int status;
    assert(pipe(to_child) == 0 && pipe(from_child) == 0);
    pid_t process = fork();
    assert(process >= 0);
    if (process == 0)
        child();
    close(to_child[0]);
    close(from_child[1]);
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, starts[i], NULL) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    close(to_child[1]);
    assert(waitpid(process, &status, 0) == process && WEXITSTATUS(status) == 5);
    return 0;
}
