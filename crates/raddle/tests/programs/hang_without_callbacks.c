// About: an endless loop that touches no memory and calls nothing.
// Covers: Spawn, Begin
// Outcome: timed out
// Timeout: 0.1
#include <pthread.h>

static void *count(void *argument)
{
    unsigned long n = 0;
    for (;;)
        __asm__ volatile("" : "+r"(n));
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, count, NULL);
    pthread_join(thread, NULL);
    return 0;
}
