// Says: SIGSEGV
// Which of its many functions glibc takes depends on the processor.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char *volatile name;

static void *measure(void *argument)
{
    char text[32];
    snprintf(text, sizeof text, "%d", 12);
    return (void *)(strlen(text) + strlen(name)); // died
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, measure, 0);
    pthread_join(thread, 0);
}
