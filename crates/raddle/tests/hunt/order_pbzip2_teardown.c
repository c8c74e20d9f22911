// What is wrong: after pbzip2: when all blocks are written, main tears the queue down and sets
// its lock to NULL, although a consumer may still be about to look at the queue once more.
// The consumers are joined only afterwards.
// Hunt: fails
// Kind: order, race
// Guilty: 5 lines
// Shows: signal, use-after-free, misuse

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define N_BLOCKS 4
#define N_CONSUMERS 2

struct queue {
    pthread_mutex_t *lock;
    int blocks[N_BLOCKS];
    int n_taken;
};

static struct queue *fifo;
static pthread_mutex_t out_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_written = PTHREAD_COND_INITIALIZER;
static int n_written;
static int output[N_BLOCKS];

static int take(struct queue *queue)
{
    int block = -1;

    pthread_mutex_lock(queue->lock); /* guilty */
    if (queue->n_taken < N_BLOCKS)
        block = queue->blocks[queue->n_taken++];
    pthread_mutex_unlock(queue->lock); /* guilty */
    return block;
}

static void *consume(void *argument)
{
    struct queue *queue = argument;
    int block;

    while ((block = take(queue)) >= 0) {
        int packed = block * 3 + 1;
        pthread_mutex_lock(&out_lock);
        output[block] = packed;
        if (++n_written == N_BLOCKS)
            pthread_cond_signal(&all_written);
        pthread_mutex_unlock(&out_lock);
    }
    return NULL;
}

static struct queue *queue_init(void)
{
    struct queue *queue = calloc(1, sizeof *queue);
    queue->lock = malloc(sizeof *queue->lock);
    pthread_mutex_init(queue->lock, NULL);
    for (int i = 0; i < N_BLOCKS; i++)
        queue->blocks[i] = i;
    return queue;
}

static void queue_delete(struct queue *queue)
{
    pthread_mutex_destroy(queue->lock); /* guilty */
    free(queue->lock); /* guilty */
    queue->lock = NULL; /* guilty */
}

int main(void)
{
    pthread_t consumers[N_CONSUMERS];
    int sum = 0;

    fifo = queue_init();
    for (int i = 0; i < N_CONSUMERS; i++)
        pthread_create(&consumers[i], NULL, consume, fifo);

    pthread_mutex_lock(&out_lock);
    while (n_written < N_BLOCKS)
        pthread_cond_wait(&all_written, &out_lock);
    pthread_mutex_unlock(&out_lock);

    queue_delete(fifo);
    for (int i = 0; i < N_CONSUMERS; i++)
        pthread_join(consumers[i], NULL);
    for (int i = 0; i < N_BLOCKS; i++)
        sum += output[i];
    printf("%d\n", sum);
    free(fifo);
    return sum == 22 ? 0 : 1;
}
