// About: two threads that both find a block unfreed. glibc aborts when it notices.
// Covers: free, malloc
// Outcome: exit 0 | double free | signal SIGABRT
// Must: double free
#include <pthread.h>
#include <stdlib.h>

static void *cache;
static int is_freed;

static void *drop(void *argument)
{
    if (!is_freed) {
        free(cache);
        is_freed = 1;
    }
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    cache = malloc(100);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, drop, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
