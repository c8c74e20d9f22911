// About: pthread_barrier_destroy is a scheduling point: a thread may come to use the object first.
// Covers: pthread_barrier_destroy, pthread_barrier_wait
// Outcome: exit 0 | misuse
// Must: misuse
// Free: no, glibc may wait for ever at a destroyed barrier.
//
// The check before it is not instrumented, so a thread can come in between only at that call.
#include <pthread.h>

static pthread_barrier_t barrier;
static volatile int in_use, is_gone, n_begun;

__attribute__((noinline, no_sanitize("thread"))) static int enter(void)
{
    if (is_gone)
        return 0;
    in_use = 1;
    return 1;
}

__attribute__((noinline, no_sanitize("thread"))) static void leave(void)
{
    in_use = 0;
}

__attribute__((noinline, no_sanitize("thread"))) static void end(void)
{
    if (in_use)
        return;
    pthread_barrier_destroy(&barrier);
    is_gone = 1;
}

static void *first(void *argument)
{
    n_begun++;
    if (enter()) {
        for (int i = 0; i < 20; i++)
            pthread_barrier_wait(&barrier);
        leave();
    }
    return argument;
}

static void *second(void *argument)
{
    n_begun++;
    end();
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    pthread_barrier_init(&barrier, NULL, 1);
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
