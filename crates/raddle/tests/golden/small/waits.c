// What is wrong: one thread waits for ever, as the argument says.

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;

static void *wait_for(void *what)
{
    int ends[2], number;
    char byte;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    if (!strcmp(what, "descriptor") && pipe(ends) == 0 && read(ends[0], &byte, 1) == 1)
        return 0;
    if (!strcmp(what, "input") && read(0, &byte, 1) == 1)
        return 0;
    if (!strcmp(what, "signal"))
        sigwait(&set, &number);
    if (!strcmp(what, "outside")) {
        if (fork() == 0) {
            sleep(2);
            _exit(0);
        }
        wait(0);
    }
    if (!strcmp(what, "barrier"))
        pthread_barrier_wait(&barrier);
    if (!strcmp(what, "semaphore"))
        sem_wait(&semaphore);
    if (!strcmp(what, "rwlock"))
        pthread_rwlock_wrlock(&rwlock);
    return what;
}

int main(int argc, char **argv)
{
    pthread_t threads[2];

    pthread_barrier_init(&barrier, 0, 3);
    sem_init(&semaphore, 0, 0);
    pthread_rwlock_rdlock(&rwlock);
    for (int i = 0; i < argc; i++)
        pthread_create(&threads[i], 0, wait_for, argv[1]);
    for (int i = 0; i < argc; i++)
        pthread_join(threads[i], 0);
    return 0;
}
