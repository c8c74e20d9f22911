// Two threads that have nothing to do with each other. With an argument, it fails.

#include <pthread.h>

static void *other(void *p) { return p; }

int main(int argc, char **argv)
{
    pthread_t thread;

    (void)argv;
    pthread_create(&thread, 0, other, 0);
    pthread_join(thread, 0);
    return argc > 1 ? 4 : 0;
}
