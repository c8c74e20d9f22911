// About: one condition variable for two conditions, so that a signal can wake a thread
// that has no use for it.
// Covers: pthread_cond_signal, pthread_cond_wait
// Outcome: exit 0 | lost wake-up | deadlock
//
// All wait in the end. No signal found nobody waiting at that moment, or one did: both
// words are fair.
#include <assert.h>
#include <pthread.h>

enum { CAPACITY = 1, SIDES = 2, ITEMS = 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int n_items, n_taken;

static void *produce(void *argument)
{
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&lock);
        while (n_items == CAPACITY)
            pthread_cond_wait(&changed, &lock);
        n_items++;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

static void *consume(void *argument)
{
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&lock);
        while (n_items == 0)
            pthread_cond_wait(&changed, &lock);
        n_items--;
        n_taken++;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[2 * SIDES];
    for (int i = 0; i < 2 * SIDES; i++)
        pthread_create(&threads[i], NULL, i < SIDES ? produce : consume, NULL);
    for (int i = 0; i < 2 * SIDES; i++)
        pthread_join(threads[i], NULL);
    assert(n_items == 0 && n_taken == SIDES * ITEMS);
    return 0;
}
