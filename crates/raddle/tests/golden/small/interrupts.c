// Sends a signal to whoever has started it, as a user would, and never ends.

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

volatile int shared;

static void *other(void *p)
{
    shared = 1;
    return p;
}

int main(int argc, char **argv)
{
    pthread_t thread;

    pthread_create(&thread, 0, other, 0);
    shared = 1;
    pthread_join(thread, 0);
    kill(getppid(), argc > 1 ? atoi(argv[1]) : SIGINT);
    for (volatile int i = 0;; i++) { }
}
