// About: producers and consumers around a bounded buffer, two condition variables.
// Covers: pthread_cond_signal, pthread_cond_wait, Choice
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>

enum { CAPACITY = 2, SIDES = 2, ITEMS = 20 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static int slots[CAPACITY], head, n_items, sum;

static void *produce(void *argument)
{
    for (int i = 1; i <= ITEMS; i++) {
        pthread_mutex_lock(&lock);
        while (n_items == CAPACITY)
            pthread_cond_wait(&not_full, &lock);
        slots[(head + n_items++) % CAPACITY] = i;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

static void *consume(void *argument)
{
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&lock);
        while (n_items == 0)
            pthread_cond_wait(&not_empty, &lock);
        assert(slots[head] > 0);
        sum += slots[head];
        slots[head] = 0;
        head = (head + 1) % CAPACITY;
        n_items--;
        pthread_mutex_unlock(&lock);
        pthread_cond_signal(&not_full);
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
    assert(n_items == 0 && sum == SIDES * ITEMS * (ITEMS + 1) / 2);
    return 0;
}
