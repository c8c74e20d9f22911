// About: a stack that overflows in a thread; the handler's stack is the thread's own, so nobody can
// run a handler there.
// Covers: Signal
// Outcome: signal SIGSEGV
#include <pthread.h>

static volatile int depth_max = 1 << 30;

static int descend(int depth)
{
    volatile char frame[4096];
    frame[depth % 4096] = (char)depth;
    if (depth >= depth_max)
        return 0;
    return descend(depth + 1) + frame[depth % 4096];
}

static void *overflow(void *argument)
{
    int *result = argument;
    *result = descend(0);
    return NULL;
}

int main(void)
{
    int result = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, overflow, &result);
    pthread_join(thread, NULL);
    return result != 0;
}
