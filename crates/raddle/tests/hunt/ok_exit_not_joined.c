// Nothing is wrong: main returns without joining the threads that count, under a lock, what they
// did. Nobody needs the counts, so it does not matter whether the threads run at all.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#define N_WORKERS 3
#define N_ROUNDS 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_done;
static int n_rounds;

static void *work(void *argument)
{
    for (int round = 0; round < N_ROUNDS; round++) {
        pthread_mutex_lock(&lock);
        n_rounds++;
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    n_done++;
    assert(n_done <= N_WORKERS && n_rounds >= n_done * N_ROUNDS);
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_attr_t detached;
    pthread_t worker;

    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < N_WORKERS; i++)
        pthread_create(&worker, &detached, work, NULL);
    return 0;
}
