// About: loops on a volatile flag, with and without work inside, no yield.
// Covers: Read, Write
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>

static volatile int ready, seen;
static volatile int data;
static unsigned long spins;

static void *consumer(void *argument)
{
    while (!ready) {
    }
    assert(data == 42);
    data = 43;
    seen = 1;
    return argument;
}

int main(void)
{
    pthread_t thread;
    assert(pthread_create(&thread, NULL, consumer, NULL) == 0);
    data = 42;
    ready = 1;
    while (!seen)
        spins++;
    assert(data == 43);
    assert(pthread_join(thread, NULL) == 0);
    return 0;
}
