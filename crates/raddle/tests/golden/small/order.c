// What is wrong: the result depends on which thread is first, and it is printed and exited with.

#include <pthread.h>
#include <unistd.h>

static int is_first, is_late;

static void *other(void *p)
{
    is_late = is_first;
    return p;
}

int main(void)
{
    pthread_t thread;

    pthread_create(&thread, 0, other, 0);
    is_first = 1;
    pthread_join(thread, 0);
    if (is_late)
        return write(1, "late\n", 5) == 5 ? 3 : 4;
    return write(1, "early\n", 6) == 6 ? 0 : 4;
}
