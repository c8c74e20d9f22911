// About: a barrier that a thread may come to before it is initialized.
// Covers: pthread_barrier_init, pthread_barrier_wait, BarrierLeave
// Outcome: exit 0 | misuse
// Must: misuse
// Free: no, glibc waits for ever at such a barrier.
#include <pthread.h>

static pthread_barrier_t barrier;

static void *first(void *argument)
{
    pthread_barrier_wait(&barrier);
    return argument;
}

static void *second(void *argument)
{
    pthread_barrier_init(&barrier, NULL, 1);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    (void)barrier;
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
