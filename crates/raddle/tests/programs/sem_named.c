// About: sem_open, sem_close, sem_unlink, EEXIST, ENOENT.
// Covers: sem_post, sem_trywait, sem_wait, SemAsk
// Outcome: exit 0
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

static char name[64];
static int ready;

static void *post(void *argument)
{
    sem_t *semaphore = sem_open(name, 0);
    assert(semaphore != SEM_FAILED);
    ready = 1;
    assert(sem_post(semaphore) == 0);
    assert(sem_close(semaphore) == 0);
    return argument;
}

int main(void)
{
    snprintf(name, sizeof name, "/raddle-sem-named-%d", getpid());
    assert(sem_open(name, 0) == SEM_FAILED && errno == ENOENT);
    sem_t *semaphore = sem_open(name, O_CREAT | O_EXCL, 0600, 0);
    assert(semaphore != SEM_FAILED);
    assert(sem_open(name, O_CREAT | O_EXCL, 0600, 0) == SEM_FAILED && errno == EEXIST);
    // One process sees a name at one address.
    assert(sem_open(name, 0) == semaphore);

    pthread_t thread;
    assert(pthread_create(&thread, NULL, post, NULL) == 0);
    assert(sem_wait(semaphore) == 0);
    assert(ready == 1);
    assert(sem_trywait(semaphore) == -1 && errno == EAGAIN);
    assert(pthread_join(thread, NULL) == 0);

    assert(sem_unlink(name) == 0);
    assert(sem_unlink(name) == -1 && errno == ENOENT);
    assert(sem_close(semaphore) == 0);
    assert(sem_close(semaphore) == 0);
    return 0;
}
