// About: blocks that one thread allocates and another frees, whose addresses come back.
// Covers: free, malloc
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 60 };

struct block {
    struct block *next;
    int number;
    char text[40];
};

static _Atomic(struct block *) stack;
static atomic_int n_freed;

static void *produce(void *argument)
{
    for (int i = 0; i < BLOCKS; i++) {
        struct block *block = malloc(sizeof *block);
        assert(block);
        block->number = i;
        memset(block->text, 'a' + i % 26, sizeof block->text);
        block->next = stack;
        while (!atomic_compare_exchange_weak(&stack, &block->next, block)) {
        }
    }
    return argument;
}

static void *consume(void *argument)
{
    while (n_freed < 2 * BLOCKS) {
        // Whoever takes takes all, so no block is freed while somebody else looks at it.
        struct block *block = atomic_exchange(&stack, NULL);
        while (block) {
            struct block *next = block->next;
            assert(block->text[0] == 'a' + block->number % 26);
            assert(block->text[39] == block->text[0]);
            free(block);
            n_freed++;
            block = next;
        }
    }
    return argument;
}

int main(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, i < 2 ? produce : consume, NULL) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_freed == 2 * BLOCKS && stack == NULL);
    return 0;
}
