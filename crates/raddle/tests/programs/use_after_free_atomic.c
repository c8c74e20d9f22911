// About: an atomic update of freed memory.
// Covers: calloc, free
// Outcome: exit 0 | use after free
// Must: use after free
// Free: no, libc has the block back at once, and writing to it damages the heap.
#include <pthread.h>
#include <stdlib.h>

static int *n_users;

static void *first(void *argument)
{
    __atomic_fetch_add(n_users, 1, __ATOMIC_SEQ_CST);
    return argument;
}

static void *second(void *argument)
{
    free(n_users);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    n_users = calloc(1, sizeof *n_users);
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
