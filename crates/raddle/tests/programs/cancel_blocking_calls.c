// About: pthread_cancel of threads in sleep, read, sem_wait, pthread_join; before they start, too.
// Covers: pthread_cancel, pthread_join, read, sem_wait, sleep
// Outcome: exit 0
// Free: no, a thread that blocks in the kernel is cancelled under control only
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

static sem_t never;
static int empty_pipe[2];
static pthread_t endless;
static atomic_int n_cleaned;

static void clean(void *argument)
{
    (void)argument;
    n_cleaned++;
}

static void *sleeps(void *argument)
{
    pthread_cleanup_push(clean, argument);
    for (;;)
        sleep(100000);
    pthread_cleanup_pop(0);
}

static void *reads(void *argument)
{
    char byte;
    pthread_cleanup_push(clean, argument);
    for (;;)
        assert(read(empty_pipe[0], &byte, 1) == -1);
    pthread_cleanup_pop(0);
}

static void *waits(void *argument)
{
    pthread_cleanup_push(clean, argument);
    for (;;)
        sem_wait(&never);
    pthread_cleanup_pop(0);
}

static void *joins(void *argument)
{
    pthread_cleanup_push(clean, argument);
    pthread_join(endless, NULL);
    assert(!"joined a thread that has not ended");
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void)
{
    void *(*const starts[])(void *) = { sleeps, reads, waits, joins };
    pthread_t threads[4];
    assert(sem_init(&never, 0, 0) == 0 && pipe(empty_pipe) == 0);
    assert(pthread_create(&endless, NULL, sleeps, NULL) == 0);
    for (int i = 0; i < 4; i++)
        assert(pthread_create(&threads[i], NULL, starts[i], NULL) == 0);
    usleep(50000);
    for (int i = 0; i < 4; i++)
        assert(pthread_cancel(threads[i]) == 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        assert(pthread_join(threads[i], &result) == 0 && result == PTHREAD_CANCELED);
    }
    assert(pthread_cancel(endless) == 0 && pthread_join(endless, NULL) == 0);

    // Cancelled at once, perhaps before its first instruction.
    void *result;
    assert(pthread_create(&threads[0], NULL, sleeps, NULL) == 0);
    assert(pthread_cancel(threads[0]) == 0);
    assert(pthread_join(threads[0], &result) == 0 && result == PTHREAD_CANCELED);
    return n_cleaned >= 5 ? 0 : 1;
}
