// About: memory that is freed and allocated again: more of it than is kept back, blocks that grow.
// Covers: memset, realloc
// Outcome: exit 0
// Must: exit 0
// Seeds: 5
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { N_SMALL = 100000, N_LARGE = 300, LARGE = 300000 };

struct node {
    pthread_mutex_t lock;
    int value;
};

static void *churn(void *argument)
{
    for (int i = 0; i < N_SMALL; i++) {
        struct node *node = malloc(sizeof *node);
        if (i % 100 == 0) {
            pthread_mutex_init(&node->lock, NULL);
            pthread_mutex_lock(&node->lock);
            node->value = i;
            pthread_mutex_unlock(&node->lock);
            assert(pthread_mutex_destroy(&node->lock) == 0);
        }
        free(node);
    }
    for (int i = 0; i < N_LARGE; i++) {
        char *block = malloc(LARGE + i * 1000);
        memset(block, i, 100);
        assert(block[99] == (char)i);
        free(block);
    }
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, churn, NULL);
    int *cells = NULL;
    for (int n = 1; n < 3000; n++) {
        cells = realloc(cells, n * sizeof *cells);
        cells[n - 1] = n;
        assert(cells[n / 2] == n / 2 + 1);
    }
    cells = realloc(cells, 3 * sizeof *cells);
    assert(cells[0] == 1 && cells[2] == 3);
    char *large = malloc(2 << 20);
    memset(large, 7, 2 << 20);
    large = realloc(large, 8 << 20);
    assert(large[(2 << 20) - 1] == 7);
    free(large);
    free(realloc(cells, 100));
    pthread_join(thread, NULL);
    return 0;
}
