// Says: SIGSEGV
// Deep inside printf, which nobody interposes.
#include <pthread.h>
#include <stdio.h>

static const char *volatile name = (const char *)8;

static void *print(void *argument)
{
    printf("hello %s\n", name); // died
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, print, 0);
    pthread_join(thread, 0);
}
