// Says: *** buffer overflow detected ***: terminated
// Flags: -D_FORTIFY_SOURCE=2
#include <pthread.h>
#include <stdio.h>

static char name[8];
static volatile int number = 123456789;

static void *print(void *argument)
{
    sprintf(name, "n%d", number); // died
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, print, 0);
    pthread_join(thread, 0);
}
