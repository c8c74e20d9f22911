// About: a loop that waits, yielding, for a flag that a thread which left early has not set.
// Covers: sched_yield
// Outcome: exit 0 | livelock
// Steps: 300000
// Must: livelock
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static atomic_int cancelled, finished;

static void *work(void *argument)
{
    if (cancelled)
        return argument; // And `finished` stays as it is.
    finished = 1;
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    cancelled = 1;
    while (!finished)
        sched_yield();
    pthread_join(thread, NULL);
    return 0;
}
