// About: freed memory of many pages: a fault, which has a better name.
// Covers: calloc, free
// Outcome: exit 0 | signal SIGSEGV | use after free
// Must: use after free
#include <pthread.h>
#include <stdlib.h>

enum { N = 1 << 18 };
static int *cells;

static void *first(void *argument)
{
    cells[N / 2]++;
    return argument;
}

static void *second(void *argument)
{
    free(cells);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    cells = calloc(N, sizeof *cells);
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
