/*
 * Component: parallel block compressor. A producer fills a FIFO with blocks,
 * consumers compress them, a writer collects the output, main cleans up.
 *
 * Bug (order violation, cf. pbzip2 0.9.4): main deletes the FIFO (destroys and
 * frees its mutex, resets the pointer) as soon as the writer has all output
 * blocks, instead of after joining the consumers. A consumer that has delivered the
 * last block still goes back to the FIFO to find out that the work is done; if
 * main deletes it first, the consumer uses the mutex through a null (or
 * dangling) pointer and crashes.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCKS 6
#define CONSUMERS 2

struct fifo {
    pthread_mutex_t *mut;
    pthread_cond_t *not_empty;
    int item[BLOCKS];
    int head;
    int tail;
    int finished;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    unsigned block[BLOCKS];
} output = { .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER };

static atomic_int blocks_read;

static struct fifo *fifo_new(void)
{
    struct fifo *q = calloc(1, sizeof *q);
    q->mut = malloc(sizeof *q->mut);
    q->not_empty = malloc(sizeof *q->not_empty);
    pthread_mutex_init(q->mut, NULL);
    pthread_cond_init(q->not_empty, NULL);
    return q;
}

static void fifo_delete(struct fifo *q)
{
    pthread_mutex_t *mut = q->mut;
    pthread_cond_t *cond = q->not_empty;
    q->mut = NULL; /* guilty */
    q->not_empty = NULL; /* guilty */
    pthread_mutex_destroy(mut); /* guilty */
    free(mut); /* guilty */
    pthread_cond_destroy(cond); /* guilty */
    free(cond); /* guilty */
}

static unsigned compress(int block)
{
    unsigned crc = 0xffffffffu ^ (unsigned)block;
    for (int i = 0; i < 200; i++)
        crc = (crc >> 1) ^ ((crc & 1) ? 0xedb88320u : 0);
    return crc | 1;
}

static void deliver(int block, unsigned data)
{
    pthread_mutex_lock(&output.lock);
    output.block[block] = data;
    pthread_cond_signal(&output.more);
    pthread_mutex_unlock(&output.lock);
}

static void *producer_main(void *arg)
{
    struct fifo *q = arg;
    for (int i = 0; i < BLOCKS; i++) {
        atomic_fetch_add(&blocks_read, 1);
        pthread_mutex_lock(q->mut);
        q->item[q->tail] = i;
        q->tail++;
        if (i == BLOCKS - 1)
            q->finished = 1;
        pthread_cond_broadcast(q->not_empty);
        pthread_mutex_unlock(q->mut);
    }
    return NULL;
}

static void *consumer_main(void *arg)
{
    struct fifo *q = arg;
    for (;;) {
        pthread_mutex_lock(q->mut); /* guilty */
        while (q->head == q->tail && !q->finished)
            pthread_cond_wait(q->not_empty, q->mut); /* guilty */
        if (q->head == q->tail) {
            pthread_mutex_unlock(q->mut); /* guilty */
            break;
        }
        int block = q->item[q->head];
        q->head++;
        pthread_mutex_unlock(q->mut);
        deliver(block, compress(block));
    }
    return NULL;
}

/* "write" one output block: entropy-code it and return its checksum */
static unsigned write_block(unsigned data)
{
    unsigned sum = data;
    for (int i = 0; i < 2000; i++)
        sum = sum * 1103515245u + 12345u + (sum >> 16);
    return sum % 1000;
}

static void *index_main(void *arg)
{
    unsigned *index = arg;
    pthread_mutex_lock(&output.lock);
    for (int i = 0; i < BLOCKS; i++)
        *index = *index * 31 + write_block(output.block[i]);
    pthread_mutex_unlock(&output.lock);
    return NULL;
}

static void *writer_main(void *arg)
{
    unsigned sum = 0;
    (void)arg;
    for (int i = 0; i < BLOCKS; i++) {
        pthread_mutex_lock(&output.lock);
        while (output.block[i] == 0)
            pthread_cond_wait(&output.more, &output.lock);
        unsigned data = output.block[i];
        pthread_mutex_unlock(&output.lock);
        sum += write_block(data);
    }
    return (void *)(size_t)sum;
}

int main(void)
{
    struct fifo *q = fifo_new();
    pthread_t prod;
    pthread_t writer;
    pthread_t cons[CONSUMERS];
    void *sum;
    unsigned index = 0;

    for (int i = 0; i < CONSUMERS; i++)
        pthread_create(&cons[i], NULL, consumer_main, q);
    pthread_create(&writer, NULL, writer_main, NULL);
    pthread_create(&prod, NULL, producer_main, q);
    pthread_join(prod, NULL);
    pthread_join(writer, &sum);
    pthread_create(&writer, NULL, index_main, &index);
    pthread_join(writer, NULL);
    printf("%d blocks, checksum %zu, index %u\n", atomic_load(&blocks_read), (size_t)sum, index);
    fifo_delete(q);
    for (int i = 0; i < CONSUMERS; i++)
        pthread_join(cons[i], NULL);
    free(q);
    return 0;
}
