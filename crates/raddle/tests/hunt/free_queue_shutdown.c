// What is wrong: the work queue is freed by whoever finds it closed and empty, and both the
// closer and the worker may find it so. `queue_close` looks only after it has let go of the
// lock: the worker may have freed the queue already.
// Hunt: fails
// Kind: order, race, atomicity
// Guilty: 3 lines
// Shows: use-after-free, double-free, signal, assert

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int jobs[8];
    int n_jobs;
    int closed;
    int worker_left;
};

static int n_done;
static _Atomic int n_freed;

static void queue_free(struct queue *queue)
{
    n_freed++;
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    free(queue); /* guilty */
}

static void queue_put(struct queue *queue, int job)
{
    pthread_mutex_lock(&queue->lock);
    queue->jobs[queue->n_jobs++] = job;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

static void queue_close(struct queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->closed = 1;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    if (queue->worker_left) /* guilty */
        queue_free(queue);
}

static void *work(void *argument)
{
    struct queue *queue = argument;
    int closed;

    pthread_mutex_lock(&queue->lock);
    for (;;) {
        while (queue->n_jobs == 0 && !queue->closed)
            pthread_cond_wait(&queue->changed, &queue->lock);
        if (queue->n_jobs == 0)
            break;
        n_done += queue->jobs[--queue->n_jobs];
        /* After job 9 there is nothing left to do: the closer cleans up. */
        if (n_done >= 9)
            break;
    }
    closed = queue->closed;
    queue->worker_left = 1; /* guilty */
    pthread_mutex_unlock(&queue->lock);
    if (closed)
        queue_free(queue);
    return NULL;
}

static void *submit(void *argument)
{
    struct queue *queue = argument;
    queue_put(queue, 4);
    queue_put(queue, 5);
    queue_close(queue);
    return NULL;
}

int main(void)
{
    struct queue *queue = calloc(1, sizeof *queue);
    pthread_t worker, client;

    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    pthread_create(&worker, NULL, work, queue);
    pthread_create(&client, NULL, submit, queue);
    pthread_join(worker, NULL);
    pthread_join(client, NULL);
    assert(n_done == 9);
    assert(n_freed == 1);
    return 0;
}
