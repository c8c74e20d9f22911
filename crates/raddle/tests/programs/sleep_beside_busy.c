// About: threads that are busy while the main thread sleeps for an hour and then tells them to stop.
// Covers: sleep, AtomicLoad, Sleep, Clock
// Outcome: exit 0
// Seeds: 5
// Free: no, it would sleep for an hour.

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int is_over;
static long counts[2][16];

static void *work(void *own)
{
    long *count = own;
    // Most of it is work that raddle cannot take for waiting.
    while (!atomic_load(&is_over))
        for (int i = 0; i < 1000; i++)
            count[i % 16]++;
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, work, counts[i]) == 0);
    for (int i = 0; i < 4; i++)
        sleep(900);
    atomic_store(&is_over, 1);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0 && counts[i][0] > 0);
    return 0;
}
