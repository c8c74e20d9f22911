// About: fork while another thread holds a lock: taken for ever in the child, free again in the parent;
// pthread_atfork, which keeps a second lock usable.
// Covers: fork
// Outcome: exit 0
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t guarded = PTHREAD_MUTEX_INITIALIZER;
static sem_t taken, release;
static int left, right;

static void before(void)
{
    pthread_mutex_lock(&guarded);
}

static void after(void)
{
    pthread_mutex_unlock(&guarded);
}

static void *hold(void *argument)
{
    pthread_mutex_lock(&held);
    sem_post(&taken);
    sem_wait(&release);
    pthread_mutex_unlock(&held);
    return argument;
}

static void *update(void *argument)
{
    for (int i = 0; i < 50; i++) {
        pthread_mutex_lock(&guarded);
        left++;
        right++;
        pthread_mutex_unlock(&guarded);
    }
    return argument;
}

int main(void)
{
    pthread_t holder, updater;
    int status;
    sem_init(&taken, 0, 0);
    sem_init(&release, 0, 0);
    assert(pthread_atfork(before, after, after) == 0);
    assert(pthread_create(&holder, NULL, hold, NULL) == 0);
    assert(pthread_create(&updater, NULL, update, NULL) == 0);
    assert(sem_wait(&taken) == 0);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        int wrong = pthread_mutex_trylock(&held) != EBUSY;
        pthread_mutex_lock(&guarded);
        wrong += left != right;
        pthread_mutex_unlock(&guarded);
        _exit(wrong);
    }
    assert(sem_post(&release) == 0);
    assert(pthread_mutex_lock(&held) == 0);
    assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert(pthread_join(holder, NULL) == 0 && pthread_join(updater, NULL) == 0);
    assert(left == 50 && right == 50);
    return 0;
}
