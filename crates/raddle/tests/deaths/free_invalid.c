// Says: free(): invalid pointer
#include <pthread.h>
#include <stdlib.h>

static char *volatile block;

static void *drop(void *argument)
{
    free(block + 8); // died
    return argument;
}

int main(void)
{
    block = malloc(100);
    pthread_t thread;
    pthread_create(&thread, 0, drop, 0);
    pthread_join(thread, 0);
}
