// Nothing is wrong: threads run other programs by fork and exec, while others work on under a lock
// that may be held when the process forks.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNNERS = 2, ADDERS = 2, ADDS = 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sum;
static int n_succeeded;

static int run(const char *program)
{
    int status;
    pid_t child = fork();

    assert(child >= 0);
    if (child == 0) {
        execl(program, program, (char *)NULL);
        _exit(127);
    }
    assert(waitpid(child, &status, 0) == child);
    assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void *runner(void *argument)
{
    if (run(argument) == 0) {
        pthread_mutex_lock(&lock);
        n_succeeded++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *adder(void *argument)
{
    for (int i = 0; i < ADDS; i++) {
        pthread_mutex_lock(&lock);
        sum++;
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

int main(void)
{
    static char yes[] = "/bin/true", no[] = "/bin/false";
    pthread_t runners[RUNNERS], adders[ADDERS];

    pthread_create(&runners[0], NULL, runner, yes);
    pthread_create(&runners[1], NULL, runner, no);
    for (int i = 0; i < ADDERS; i++)
        pthread_create(&adders[i], NULL, adder, NULL);
    for (int i = 0; i < RUNNERS; i++)
        pthread_join(runners[i], NULL);
    for (int i = 0; i < ADDERS; i++)
        pthread_join(adders[i], NULL);
    assert(n_succeeded == 1);
    assert(sum == ADDERS * ADDS);
    return 0;
}
