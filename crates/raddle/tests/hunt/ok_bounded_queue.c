// Nothing is wrong: a bounded queue with two condition variables, each waited for in a loop
// and signalled under the lock; it is closed by a broadcast.
// Hunt: clean

#include <assert.h>
#include <pthread.h>

#define CAPACITY 2
#define N_ITEMS 5
#define N_PRODUCERS 2
#define N_CONSUMERS 2

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t not_empty;
    pthread_cond_t not_full;
    int items[CAPACITY];
    int head;
    int count;
    int closed;
};

static struct queue queue = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .not_empty = PTHREAD_COND_INITIALIZER,
    .not_full = PTHREAD_COND_INITIALIZER,
};

static void put(struct queue *queue, int item)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->count == CAPACITY)
        pthread_cond_wait(&queue->not_full, &queue->lock);
    queue->items[(queue->head + queue->count) % CAPACITY] = item;
    queue->count++;
    pthread_cond_signal(&queue->not_empty);
    pthread_mutex_unlock(&queue->lock);
}

static int take(struct queue *queue, int *item)
{
    int got = 0;

    pthread_mutex_lock(&queue->lock);
    while (queue->count == 0 && !queue->closed)
        pthread_cond_wait(&queue->not_empty, &queue->lock);
    if (queue->count > 0) {
        *item = queue->items[queue->head];
        queue->head = (queue->head + 1) % CAPACITY;
        queue->count--;
        got = 1;
        pthread_cond_signal(&queue->not_full);
    }
    pthread_mutex_unlock(&queue->lock);
    return got;
}

static void close_queue(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = 1;
    pthread_cond_broadcast(&queue->not_empty);
    pthread_mutex_unlock(&queue->lock);
}

static void *produce(void *argument)
{
    for (int i = 1; i <= N_ITEMS; i++)
        put(&queue, i);
    return argument;
}

static void *consume(void *argument)
{
    int *sum = argument;
    int item;
    while (take(&queue, &item))
        *sum += item;
    return NULL;
}

int main(void)
{
    pthread_t producers[N_PRODUCERS], consumers[N_CONSUMERS];
    int sums[N_CONSUMERS] = {0};
    int sum = 0;

    for (int i = 0; i < N_PRODUCERS; i++)
        pthread_create(&producers[i], NULL, produce, NULL);
    for (int i = 0; i < N_CONSUMERS; i++)
        pthread_create(&consumers[i], NULL, consume, &sums[i]);
    for (int i = 0; i < N_PRODUCERS; i++)
        pthread_join(producers[i], NULL);
    close_queue(&queue);
    for (int i = 0; i < N_CONSUMERS; i++) {
        pthread_join(consumers[i], NULL);
        sum += sums[i];
    }
    assert(sum == N_PRODUCERS * N_ITEMS * (N_ITEMS + 1) / 2);
    return 0;
}
