// About: _exit from a thread: no handler runs, no buffer is flushed.
// Covers: _exit, Exit
// Outcome: exit 6
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void handler(void)
{
    _exit(9);
}

static void *leave(void *argument)
{
    (void)argument;
    _exit(6);
}

int main(void)
{
    pthread_t thread;
    if (atexit(handler) != 0)
        return 1;
    printf("never seen when standard output is a file or a pipe\n");
    pthread_create(&thread, NULL, leave, NULL);
    pthread_join(thread, NULL);
    return 1;
}
