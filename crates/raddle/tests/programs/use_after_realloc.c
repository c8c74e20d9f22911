// About: the old place of a block that moved.
// Covers: realloc
// Outcome: exit 0 | use after free
// Must: use after free
#include <pthread.h>
#include <stdlib.h>

static int *cells;
static volatile int last;

static void *first(void *argument)
{
    int *mine = cells;
    last = mine[0];
    return argument;
}

static void *second(void *argument)
{
    cells = realloc(cells, 4096);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    cells = calloc(4, sizeof *cells);
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
