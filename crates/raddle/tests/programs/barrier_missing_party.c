// About: a barrier that one thread never reaches.
// Covers: pthread_barrier_init, pthread_barrier_wait, Init, BarrierEnter
// Outcome: deadlock
#include <pthread.h>

static pthread_barrier_t barrier;

static void *work(void *argument)
{
    pthread_barrier_wait(&barrier);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    pthread_barrier_init(&barrier, NULL, 3);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
