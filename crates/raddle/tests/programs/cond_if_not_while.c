// About: a wait under «if», so that another consumer may take the item in between.
// Covers: pthread_cond_broadcast, pthread_cond_wait
// Outcome: exit 0 | assert
// Must: assert
#include <assert.h>
#include <pthread.h>

enum { CONSUMERS = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int n_items;

static void *consume(void *argument)
{
    pthread_mutex_lock(&lock);
    if (n_items == 0)
        pthread_cond_wait(&filled, &lock);
    assert(n_items > 0);
    n_items--;
    pthread_mutex_unlock(&lock);
    return argument;
}

static void *produce(void *argument)
{
    for (int i = 0; i < CONSUMERS; i++) {
        pthread_mutex_lock(&lock);
        n_items++;
        pthread_cond_broadcast(&filled);
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

int main(void)
{
    pthread_t producer, consumers[CONSUMERS];
    for (int i = 0; i < CONSUMERS; i++)
        pthread_create(&consumers[i], NULL, consume, NULL);
    pthread_create(&producer, NULL, produce, NULL);
    pthread_join(producer, NULL);
    for (int i = 0; i < CONSUMERS; i++)
        pthread_join(consumers[i], NULL);
    assert(n_items == 0);
    return 0;
}
