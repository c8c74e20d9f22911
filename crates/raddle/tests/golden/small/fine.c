// Nothing is wrong: two threads that take turns by a join.

#include <pthread.h>

int shared;

static void *other(void *p)
{
    shared = 1;
    return p;
}

int main(void)
{
    pthread_t thread;

    pthread_create(&thread, 0, other, 0);
    pthread_join(thread, 0);
    return 0;
}
