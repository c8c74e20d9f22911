// What is wrong: a thread spins in code without callbacks, and the program exits with a status.

#include <pthread.h>

static volatile int is_set;

static void *set(void *p)
{
    is_set = 1;
    return p;
}

__attribute__((no_sanitize("thread"))) static void spin(void)
{
    while (!is_set) { }
}

int main(void)
{
    pthread_t thread;

    pthread_create(&thread, 0, set, 0);
    spin();
    pthread_join(thread, 0);
    return 3;
}
