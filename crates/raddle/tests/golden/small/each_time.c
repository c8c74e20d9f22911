// What is wrong: how often it was started, by a file, decides what it does.

#include <pthread.h>
#include <stdio.h>

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
    FILE *file = fopen("starts", "a+");
    fputc('x', file);
    fflush(file);
    long n = ftell(file);
    fclose(file);
    for (long i = 0; i < n; i++)
        shared++;
    return 0;
}
