// About: a library function that reads freed memory.
// Covers: strdup
// Outcome: exit 0 | use after free
// Must: use after free
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static char *name;
static volatile size_t n_characters;

static void *first(void *argument)
{
    n_characters = strlen(name);
    return argument;
}

static void *second(void *argument)
{
    free(name);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    name = strdup("concurrency");
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
