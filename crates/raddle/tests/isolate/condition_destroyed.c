// What is wrong: as in pbzip2, the main thread gives up the queue's condition variable while
// the consumer still has to signal it.
// Isolate: rr
// Cause: race, order
// Guilty: 3 lines

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t *not_full;
    int n_items;
};

static struct queue fifo = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *consume(void *argument)
{
    (void)argument;
    for (int i = 0; i < 4; i++) {
        pthread_mutex_lock(&fifo.lock);
        fifo.n_items--;
        pthread_mutex_unlock(&fifo.lock);
        pthread_cond_signal(fifo.not_full); /* guilty */
        usleep(1000);
    }
    return NULL;
}

static void delete_queue(void)
{
    pthread_cond_t *cond = fifo.not_full;
    fifo.not_full = NULL; /* guilty */
    pthread_cond_destroy(cond);
    free(cond); /* guilty */
}

int main(void)
{
    pthread_t consumer;
    fifo.n_items = 4;
    fifo.not_full = malloc(sizeof *fifo.not_full);
    pthread_cond_init(fifo.not_full, NULL);
    pthread_create(&consumer, NULL, consume, NULL);
    usleep(2500);
    delete_queue();
    pthread_join(consumer, NULL);
    return 0;
}
