// About: two threads that each read first what the other writes second.
// Covers: read
// Outcome: deadlock
//
// Every end of both pipes is in this process, so nobody can come to help.
#include <pthread.h>
#include <unistd.h>

static int there[2], back[2];

static void *answer(void *argument)
{
    char byte;
    if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1)
        return NULL;
    return argument;
}

int main(void)
{
    pthread_t thread;
    char byte = 'x';
    if (pipe(there) != 0 || pipe(back) != 0)
        return 1;
    pthread_create(&thread, NULL, answer, NULL);
    if (read(back[0], &byte, 1) != 1 || write(there[1], &byte, 1) != 1)
        return 1;
    pthread_join(thread, NULL);
    return 0;
}
