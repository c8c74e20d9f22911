// About: fork whose child uses threads, locks and the heap; waitpid, WEXITSTATUS, a killed child.
// Covers: fork, wait, waitpid, Fork
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *work(void *argument)
{
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&lock);
        count++;
        pthread_mutex_unlock(&lock);
        free(malloc(100));
    }
    return argument;
}

static void run_threads(void)
{
    pthread_t threads[2];
    count = 0;
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(count == 20);
}

int main(void)
{
    int status;
    run_threads();
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        run_threads();
        usleep(1000);
        exit(17);
    }
    run_threads();
    assert(waitpid(child, &status, 0) == child);
    assert(WIFEXITED(status) && WEXITSTATUS(status) == 17);

    child = fork();
    assert(child >= 0);
    if (child == 0)
        for (;;)
            pause();
    assert(kill(child, SIGKILL) == 0);
    assert(wait(&status) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return 0;
}
