// Checksums blocks of text: two threads write blocks and put them into a bounded queue, two
// take them out and check them.
//
// The access pattern: bytes one by one and a table, blocks that pass from one thread to
// another, a mutex and two condition variables that everybody needs.

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDES = 2, BLOCKS = 30000, BLOCK_BYTES = 1024, CAPACITY = 32 };

struct block {
    uint32_t seed;
    char text[BLOCK_BYTES];
};

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    struct block *items[CAPACITY];
    unsigned head, n_items;
};

static struct queue queue = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .not_empty = PTHREAD_COND_INITIALIZER,
    .not_full = PTHREAD_COND_INITIALIZER,
};
static uint32_t table[256];
// Computed once more with zlib, in one thread.
static const uint32_t SUM = 0x9bd2f6ed;

static void put(struct queue *q, struct block *item)
{
    pthread_mutex_lock(&q->lock);
    while (q->n_items == CAPACITY)
        pthread_cond_wait(&q->not_full, &q->lock);
    q->items[(q->head + q->n_items++) % CAPACITY] = item;
    pthread_cond_signal(&q->not_empty);
    pthread_mutex_unlock(&q->lock);
}

static struct block *take(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (q->n_items == 0)
        pthread_cond_wait(&q->not_empty, &q->lock);
    struct block *item = q->items[q->head];
    q->head = (q->head + 1) % CAPACITY;
    q->n_items--;
    pthread_cond_signal(&q->not_full);
    pthread_mutex_unlock(&q->lock);
    return item;
}

static void fill(struct block *block)
{
    uint32_t random = block->seed;
    for (int i = 0; i < BLOCK_BYTES; i++) {
        random = random * 1664525 + 1013904223;
        block->text[i] = "etaoin shrdlu.,\n"[random >> 28];
    }
}

static uint32_t checksum(const struct block *block)
{
    uint32_t crc = ~0u;
    for (int i = 0; i < BLOCK_BYTES; i++)
        crc = table[(crc ^ (unsigned char)block->text[i]) & 0xff] ^ crc >> 8;
    return ~crc;
}

static void *produce(void *argument)
{
    uint32_t side = *(uint32_t *)argument;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        struct block *block = malloc(sizeof *block);
        if (!block)
            abort();
        block->seed = i * SIDES + side;
        fill(block);
        put(&queue, block);
    }
    put(&queue, NULL);
    return NULL;
}

static void *consume(void *argument)
{
    uint32_t *sum = argument;
    struct block *block;
    while ((block = take(&queue)) != NULL) {
        *sum += checksum(block) ^ block->seed;
        free(block);
    }
    return NULL;
}

int main(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
        table[i] = crc;
    }
    pthread_t producers[SIDES], consumers[SIDES];
    uint32_t sides[SIDES], sums[SIDES] = {0};
    for (int i = 0; i < SIDES; i++) {
        sides[i] = i;
        if (pthread_create(&producers[i], NULL, produce, &sides[i]) != 0
            || pthread_create(&consumers[i], NULL, consume, &sums[i]) != 0)
            abort();
    }
    for (int i = 0; i < SIDES; i++) {
        pthread_join(producers[i], NULL);
        pthread_join(consumers[i], NULL);
    }

    uint32_t sum = 0;
    for (int i = 0; i < SIDES; i++)
        sum += sums[i];
    printf("%d blocks, sum %08x\n", SIDES * BLOCKS, sum);
    return sum != SUM;
}
