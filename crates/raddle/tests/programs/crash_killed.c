// About: SIGKILL after 100000 accesses; nothing that happened before may be lost.
// Covers: raise, Repeats
// Outcome: signal SIGKILL
#include <pthread.h>
#include <signal.h>

enum { CELLS = 1000 };

static int cells[CELLS];

static void *fill(void *argument)
{
    for (int round = 0; round < 50; round++)
        for (int i = 0; i < CELLS; i++)
            cells[i] += round;
    raise(SIGKILL);
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, fill, NULL);
    pthread_join(thread, NULL);
    return 0;
}
