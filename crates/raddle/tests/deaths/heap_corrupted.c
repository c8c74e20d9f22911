// Says: malloc(): corrupted top size
// The heap is damaged in one call and found to be so in another.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static char *volatile blocks[2];

static void *corrupt(void *argument)
{
    blocks[0] = malloc(1000);
    memset(blocks[0], 0xff, 1000 + 64);
    blocks[1] = malloc(100000); // died
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, corrupt, 0);
    pthread_join(thread, 0);
}
