// About: fgets on a pipe that a signal interrupts, and one that a thread is cancelled in.
// Covers: fgets, pthread_cancel, pthread_kill
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static int ends[2];
static FILE *file;
static sem_t handled;

static void handle(int number)
{
    (void)number;
    sem_post(&handled);
}

static void *interrupted(void *argument)
{
    char line[8];
    if (fgets(line, sizeof line, file) == NULL)
        assert(errno == EINTR && ferror(file));
    else
        // The signal came before.
        assert(line[0] == 'x');
    return argument;
}

static void *cancelled(void *argument)
{
    char line[8];
    clearerr(file);
    fgets(line, sizeof line, file);
    assert(!"still here");
    return argument;
}

int main(void)
{
    struct sigaction action = { .sa_handler = handle };
    pthread_t thread;
    void *result;
    assert(sigaction(SIGUSR1, &action, NULL) == 0 && sem_init(&handled, 0, 0) == 0);
    assert(pipe(ends) == 0 && (file = fdopen(ends[0], "r")) != NULL);
    assert(pthread_create(&thread, NULL, interrupted, NULL) == 0);
    assert(pthread_kill(thread, SIGUSR1) == 0);
    while (sem_wait(&handled) != 0)
        ;
    assert(write(ends[1], "x\n", 2) == 2);
    assert(pthread_join(thread, NULL) == 0);
    // Whatever is left of the line.
    close(ends[0]), close(ends[1]);
    assert(pipe(ends) == 0 && (file = fdopen(ends[0], "r")) != NULL);
    assert(pthread_create(&thread, NULL, cancelled, NULL) == 0);
    assert(pthread_cancel(thread) == 0);
    assert(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    return 0;
}
