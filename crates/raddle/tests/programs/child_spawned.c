// About: posix_spawn and waitpid in several threads: children of different lengths, each with its thread, and one
// for whoever comes first.
// Covers: posix_spawn, waitpid, wait
// Outcome: exit 0
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int order[3], n_ended, n_any;

static pid_t start(int status, int length)
{
    char command[100];
    char *arguments[] = { "sh", "-c", command, NULL };
    pid_t child;
    snprintf(command, sizeof command, "i=0; while [ $i -lt %d ]; do i=$((i + 1)); done; exit %d", length, status);
    assert(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0);
    return child;
}

static void *own(void *argument)
{
    int number = *(int *)argument, status;
    pid_t child = start(number, 600 - 200 * number);
    assert(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == number);
    pthread_mutex_lock(&lock);
    order[n_ended++] = number;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *any(void *argument)
{
    int status;
    pid_t child = wait(&status);
    if (child < 0) {
        assert(errno == ECHILD);
        return argument;
    }
    assert(WEXITSTATUS(status) >= 10);
    pthread_mutex_lock(&lock);
    n_any++;
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_t threads[3], others[2];
    int numbers[] = { 0, 1, 2 };
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, own, &numbers[i]) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_ended == 3);
    start(10, 300);
    start(11, 10);
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&others[i], NULL, any, NULL) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(others[i], NULL) == 0);
    assert(n_any == 2);
    return 0;
}
