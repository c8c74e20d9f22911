// What is wrong: as in Mozilla's script engine, one thread ends the table of file names while
// another one, which holds no lock either, is about to look into it.
// Isolate: rr
// Cause: race
// Executions: 1 1 1 0
// Guilty: 2 lines

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct table {
    int n_entries;
    const char *entries[4];
};

struct runtime {
    struct table *file_names;
};

static struct runtime runtime;

static void *sweep(void *argument)
{
    struct runtime *rt = argument;
    if (rt->file_names == NULL) /* guilty */
        return NULL;
    usleep(2000);
    int n = rt->file_names->n_entries;
    printf("%d\n", n);
    return NULL;
}

static void *finish(void *argument)
{
    struct runtime *rt = argument;
    usleep(1000);
    rt->file_names = NULL; /* guilty */
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    runtime.file_names = calloc(1, sizeof *runtime.file_names);
    pthread_create(&threads[0], NULL, sweep, &runtime);
    pthread_create(&threads[1], NULL, finish, &runtime);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
