// About: vfork and exec, with a pipe from the new program, while other threads work and sleep.
// Covers: vfork, read, waitpid
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_work;

static void *work(void *argument)
{
    for (int i = 0; i < 100; i++) {
        pthread_mutex_lock(&lock);
        n_work++;
        pthread_mutex_unlock(&lock);
        if (i % 10 == 0)
            usleep(50);
    }
    return argument;
}

static void check(int from)
{
    char text[64];
    int n = 0;
    for (ssize_t more; (more = read(from, text + n, 5)) > 0; n += more)
        ;
    assert(n == 16 && memcmp(text, "hello from afar\n", 16) == 0);
}

static void *run(void *argument)
{
    int end[2], status;
    assert(pipe(end) == 0);
    pid_t child = vfork();
    if (child == 0) {
        dup2(end[1], 1);
        close(end[0]);
        close(end[1]);
        execl("/bin/echo", "echo", "hello", "from", "afar", (char *)NULL);
        _exit(127);
    }
    assert(child > 0 && close(end[1]) == 0);
    check(end[0]);
    assert(close(end[0]) == 0);
    assert(waitpid(child, &status, 0) == child && status == 0);
    return argument;
}

int main(void)
{
    void *(*const starts[])(void *) = { run, work, run };
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, starts[i], NULL) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_work == 100);
    return 0;
}
