// About: a semaphore, a condition variable, a barrier, and a mutex that a child process shares.
// Covers: fork, sem_wait, pthread_cond_wait, pthread_barrier_wait, waitpid
// Outcome: exit 0
// Seeds: 3

#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
    sem_t semaphore;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_barrier_t door;
    int is_ready;
};

static void child(struct shared *shared)
{
    usleep(2000);
    sem_post(&shared->semaphore);
    pthread_mutex_lock(&shared->mutex);
    shared->is_ready = 1;
    pthread_cond_signal(&shared->changed);
    pthread_mutex_unlock(&shared->mutex);
    pthread_barrier_wait(&shared->door);
    _exit(7);
}

int main(void)
{
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert(shared != MAP_FAILED);
    pthread_mutexattr_t mutex;
    pthread_condattr_t changed;
    pthread_barrierattr_t door;
    assert(pthread_mutexattr_init(&mutex) == 0 && pthread_condattr_init(&changed) == 0);
    assert(pthread_barrierattr_init(&door) == 0);
    assert(pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED) == 0);
    assert(pthread_condattr_setpshared(&changed, PTHREAD_PROCESS_SHARED) == 0);
    assert(pthread_barrierattr_setpshared(&door, PTHREAD_PROCESS_SHARED) == 0);
    assert(sem_init(&shared->semaphore, 1, 0) == 0);
    assert(pthread_mutex_init(&shared->mutex, &mutex) == 0);
    assert(pthread_cond_init(&shared->changed, &changed) == 0);
    assert(pthread_barrier_init(&shared->door, &door, 2) == 0);

    pid_t process = fork();
    assert(process >= 0);
    if (process == 0)
        child(shared);
    assert(sem_wait(&shared->semaphore) == 0);
    pthread_mutex_lock(&shared->mutex);
    while (!shared->is_ready)
        pthread_cond_wait(&shared->changed, &shared->mutex);
    pthread_mutex_unlock(&shared->mutex);
    pthread_barrier_wait(&shared->door);
    int status;
    assert(waitpid(process, &status, 0) == process);
    assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    return 0;
}
