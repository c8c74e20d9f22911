// About: pthread_mutex_destroy of a locked mutex (EBUSY in glibc).
// Covers: pthread_mutex_destroy
// Outcome: exit 0 | exit 1 | misuse
// Must: misuse
//
// The owner forgets to wait for its helper. Exit status 1 says that glibc noticed.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct job {
    pthread_mutex_t lock;
    int done;
};

static void *help(void *argument)
{
    struct job *job = argument;
    pthread_mutex_lock(&job->lock);
    sched_yield();
    job->done = 1;
    pthread_mutex_unlock(&job->lock);
    return NULL;
}

int main(void)
{
    static struct job job;
    pthread_t helper;
    pthread_mutex_init(&job.lock, NULL);
    pthread_create(&helper, NULL, help, &job);
    sched_yield();
    if (pthread_mutex_destroy(&job.lock) == EBUSY)
        exit(1);
    exit(0);
}
