// What is wrong: it never ends.

#include <pthread.h>

volatile int shared;

static void *other(void *p)
{
    shared = 1;
    return p;
}

int main(void)
{
    pthread_t thread;

    pthread_create(&thread, 0, other, 0);
    shared = 1;
    pthread_join(thread, 0);
    for (volatile int i = 0;; i++) { }
}
