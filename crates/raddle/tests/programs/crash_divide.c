// About: a division by a counter that another thread may not have raised yet.
// Covers: Signal
// Outcome: exit 0 | signal SIGFPE
// Must: signal SIGFPE
#include <pthread.h>

static volatile int n_samples, total;

static void *sample(void *argument)
{
    total += 10;
    n_samples++;
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, sample, NULL);
    volatile int mean = total / n_samples;
    pthread_join(thread, NULL);
    return mean < 0;
}
