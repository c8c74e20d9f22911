// About: sem_destroy is a scheduling point: a thread may come to use the object first.
// Covers: sem_destroy, sem_wait
// Outcome: exit 0 | misuse
// Must: misuse
//
// The check before it is not instrumented, so a thread can come in between only at that call.
#include <pthread.h>
#include <semaphore.h>

static sem_t items;
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
    sem_destroy(&items);
    is_gone = 1;
}

static void *first(void *argument)
{
    n_begun++;
    if (enter()) {
        for (int i = 0; i < 20; i++) {
            sem_wait(&items);
            sem_post(&items);
        }
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
    sem_init(&items, 0, 1);
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
