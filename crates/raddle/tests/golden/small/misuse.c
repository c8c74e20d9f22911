// What is wrong: whatever the argument says, done to a synchronization object against its rules.

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static sem_t semaphore;

static void *wait_on(void *what)
{
    if (!strcmp(what, "semaphore-destroy-waiting"))
        sem_wait(&semaphore);
    if (!strcmp(what, "barrier-destroy-waiting"))
        pthread_barrier_wait(&barrier);
    if (!strcmp(what, "cond-destroy-waiting")) {
        pthread_mutex_lock(&mutex);
        pthread_cond_wait(&cond, &mutex);
    }
    if (!strcmp(what, "mutex-unlock-other"))
        pthread_mutex_unlock(&mutex);
    return what;
}

int main(int argc, char **argv)
{
    char *what = argc > 1 ? argv[1] : "";
    int value;
    pthread_t thread;
    pthread_mutex_t *freed = malloc(sizeof *freed);

    pthread_mutex_init(freed, 0);
    pthread_spin_init(&spin, 0);
    pthread_barrier_init(&barrier, 0, 2);
    sem_init(&semaphore, 0, 0);
    if (!strcmp(what, "mutex-unlock-other"))
        pthread_mutex_lock(&mutex);
    pthread_create(&thread, 0, wait_on, what);
    if (strstr(what, "waiting"))
        sched_yield();

    if (!strcmp(what, "mutex-lock-freed")) { free(freed); pthread_mutex_lock(freed); }
    if (!strcmp(what, "mutex-trylock-destroyed")) { pthread_mutex_destroy(&mutex); pthread_mutex_trylock(&mutex); }
    if (!strcmp(what, "mutex-trylock-null")) pthread_mutex_trylock(0);
    if (!strcmp(what, "mutex-uninitialized")) { memset(&mutex, 0x5a, sizeof mutex); pthread_mutex_lock(&mutex); }
    if (!strcmp(what, "rwlock-trylock-destroyed")) { pthread_rwlock_destroy(&rwlock); pthread_rwlock_tryrdlock(&rwlock); }
    if (!strcmp(what, "rwlock-wrlock-null")) pthread_rwlock_wrlock(0);
    if (!strcmp(what, "rwlock-destroy-held")) { pthread_rwlock_rdlock(&rwlock); pthread_rwlock_destroy(&rwlock); }
    if (!strcmp(what, "spin-trylock-destroyed")) { pthread_spin_destroy(&spin); pthread_spin_trylock(&spin); }
    if (!strcmp(what, "spin-unlock-destroyed")) { pthread_spin_destroy(&spin); pthread_spin_unlock(&spin); }
    if (!strcmp(what, "spin-destroy-held")) { pthread_spin_lock(&spin); pthread_spin_destroy(&spin); }
    if (!strcmp(what, "cond-wait-unlocked")) pthread_cond_wait(&cond, &mutex);
    if (!strcmp(what, "cond-wait-null")) { pthread_mutex_lock(&mutex); pthread_cond_wait(0, &mutex); }
    if (!strcmp(what, "cond-signal-destroyed")) { pthread_cond_destroy(&cond); pthread_cond_signal(&cond); }
    if (!strcmp(what, "cond-broadcast-null")) pthread_cond_broadcast(0);
    if (!strcmp(what, "cond-destroy-waiting")) pthread_cond_destroy(&cond);
    if (!strcmp(what, "semaphore-trywait-destroyed")) { sem_destroy(&semaphore); sem_trywait(&semaphore); }
    if (!strcmp(what, "semaphore-value-destroyed")) { sem_destroy(&semaphore); sem_getvalue(&semaphore, &value); }
    if (!strcmp(what, "semaphore-post-destroyed")) { sem_destroy(&semaphore); sem_post(&semaphore); }
    if (!strcmp(what, "semaphore-destroy-waiting")) sem_destroy(&semaphore);
    if (!strcmp(what, "barrier-wait-destroyed")) { pthread_barrier_destroy(&barrier); pthread_barrier_wait(&barrier); }
    if (!strcmp(what, "barrier-destroy-waiting")) pthread_barrier_destroy(&barrier);
    pthread_join(thread, 0);
    free(freed);
    return 0;
}
