// What is wrong: a consumer that finds the bounded buffer empty waits once, with `if` in place
// of `while`. Another consumer may take the item between the signal and its waking up, and it
// takes from an empty buffer.
// Hunt: fails
// Kind: atomicity, order
// Guilty: 4 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>

#define CAPACITY 2
#define N_ITEMS 4

struct buffer {
    pthread_mutex_t lock;
    pthread_cond_t not_empty;
    pthread_cond_t not_full;
    int items[CAPACITY];
    int head;
    int count;
};

static struct buffer buffer = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0,
};

static void put(struct buffer *buffer, int item)
{
    pthread_mutex_lock(&buffer->lock);
    while (buffer->count == CAPACITY)
        pthread_cond_wait(&buffer->not_full, &buffer->lock);
    buffer->items[(buffer->head + buffer->count) % CAPACITY] = item;
    buffer->count++;
    pthread_cond_signal(&buffer->not_empty);
    pthread_mutex_unlock(&buffer->lock);
}

static int take(struct buffer *buffer)
{
    pthread_mutex_lock(&buffer->lock);
    if (buffer->count == 0) /* guilty */
        pthread_cond_wait(&buffer->not_empty, &buffer->lock); /* guilty */
    assert(buffer->count > 0); /* guilty */
    int item = buffer->items[buffer->head];
    buffer->head = (buffer->head + 1) % CAPACITY;
    buffer->count--; /* guilty */
    pthread_cond_signal(&buffer->not_full);
    pthread_mutex_unlock(&buffer->lock);
    return item;
}

static void *produce(void *argument)
{
    for (int i = 1; i <= N_ITEMS; i++)
        put(&buffer, i);
    return argument;
}

static void *consume(void *argument)
{
    int *sum = argument;
    for (int i = 0; i < N_ITEMS / 2; i++)
        *sum += take(&buffer);
    return NULL;
}

int main(void)
{
    pthread_t producer, consumers[2];
    int sums[2] = {0, 0};

    pthread_create(&producer, NULL, produce, NULL);
    for (int i = 0; i < 2; i++)
        pthread_create(&consumers[i], NULL, consume, &sums[i]);
    pthread_join(producer, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(consumers[i], NULL);
    assert(sums[0] + sums[1] == N_ITEMS * (N_ITEMS + 1) / 2);
    return 0;
}
