// About: a loop without yield or clock that waits for a thread which sleeps: virtual time has to
// pass although somebody can run.
// Covers: usleep
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int ready;
static volatile int also_ready;
static unsigned long spins;

static void *prepare(void *argument)
{
    usleep(5000);
    ready = 1;
    usleep(5000);
    also_ready = 1;
    return argument;
}

int main(void)
{
    pthread_t thread;
    assert(pthread_create(&thread, NULL, prepare, NULL) == 0);
    while (!atomic_load(&ready)) {
    }
    while (!also_ready)
        spins++;
    assert(pthread_join(thread, NULL) == 0);
    return 0;
}
