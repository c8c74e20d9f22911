// About: two variables that belong together, each updated atomically.
// Covers: __assert_fail
// Outcome: exit 0 | assert
// Must: assert
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int n_items, n_bytes;

static void *add(void *argument)
{
    for (int i = 0; i < 5; i++) {
        n_items++;
        n_bytes += 8;
    }
    return argument;
}

static void *check(void *argument)
{
    int items = n_items, bytes = n_bytes;
    assert(bytes == 8 * items);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, add, NULL);
    pthread_create(&threads[1], NULL, check, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
