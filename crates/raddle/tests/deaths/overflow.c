// Says: SIGSEGV
#include <pthread.h>

static volatile int n_max = 1 << 30;
// All on one line, as any of it may be what first needs more stack than there is.
static int descend(int n) { volatile char frame[512]; frame[n % 512] = 1; return n >= n_max ? 0 : descend(n + 1) + frame[n % 512]; } // died

static void *overflow(void *argument)
{
    *(int *)argument = descend(0);
    return argument;
}

int main(void)
{
    int result;
    pthread_t thread;
    pthread_create(&thread, 0, overflow, &result);
    pthread_join(thread, 0);
    return result;
}
