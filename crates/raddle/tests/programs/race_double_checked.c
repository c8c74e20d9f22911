// About: a flag that is set before what it announces is there.
// Covers: calloc, free, pthread_mutex_lock, pthread_mutex_unlock
// Outcome: exit 0 | assert
// Must: assert
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int is_loaded;
static _Atomic(int *) table;

static int *get(void)
{
    if (!is_loaded) {
        pthread_mutex_lock(&lock);
        if (!is_loaded) {
            is_loaded = 1;
            table = calloc(16, sizeof(int));
        }
        pthread_mutex_unlock(&lock);
    }
    return table;
}

static void *use(void *argument)
{
    int *mine = get();
    assert(mine != NULL);
    return argument;
}

int main(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, use, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    free(table);
    return 0;
}
