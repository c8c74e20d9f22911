// Nothing is wrong: a thread gives a child process five seconds by WNOHANG and short sleeps, kills it otherwise, and
// tells the others by a condition variable. The child needs no time to speak of, so it is never killed.
// Hunt: clean
// Runs: 400

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int is_over, status;
static pid_t child;

static void *supervise(void *argument)
{
    pid_t seen = 0;
    for (int i = 0; i < 50 && seen == 0; i++) {
        seen = waitpid(child, &status, WNOHANG);
        if (seen == 0)
            usleep(100000);
    }
    if (seen == 0) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    pthread_mutex_lock(&lock);
    is_over = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return argument;
}

static void *await(void *argument)
{
    pthread_mutex_lock(&lock);
    while (!is_over)
        pthread_cond_wait(&changed, &lock);
    assert(WIFEXITED(status) && WEXITSTATUS(status) == 9);
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_t threads[3];
    child = fork();
    assert(child >= 0);
    if (child == 0) {
        for (volatile int i = 0; i < 100000; i++)
            ;
        _exit(9);
    }
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, i == 0 ? supervise : await, NULL) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    return 0;
}
