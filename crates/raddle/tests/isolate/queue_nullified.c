// What is wrong: as in pbzip2, the main thread clears the queue without the queue's lock, and
// without waiting for the consumer, which still takes from it under the lock.
// Isolate: rr
// Cause: race
// Executions: 1 1 1 0
// Guilty: 2 lines

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct queue {
    int items[8];
    int n_items;
};

static struct queue *fifo;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *consume(void *argument)
{
    (void)argument;
    int sum = 0, left = 1;
    while (left > 0) {
        pthread_mutex_lock(&lock);
        struct queue *queue = fifo; /* guilty */
        left = --queue->n_items;
        sum += queue->items[left];
        pthread_mutex_unlock(&lock);
        usleep(1000);
    }
    printf("%d\n", sum);
    return NULL;
}

int main(void)
{
    pthread_t consumer;
    fifo = calloc(1, sizeof *fifo);
    for (int i = 0; i < 8; i++)
        fifo->items[fifo->n_items++] = i;
    pthread_create(&consumer, NULL, consume, NULL);
    usleep(2500);
    fifo = NULL; /* guilty */
    pthread_join(consumer, NULL);
    return 0;
}
