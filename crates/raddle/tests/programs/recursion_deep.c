// About: calls 5000 deep in two threads at once: entries and exits without accesses between.
// Covers: __tsan_func_entry, __tsan_func_exit, Enter, Leave
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>

static int limit = 5000;

static int descend(int depth)
{
    if (depth >= limit)
        return depth;
    int below = descend(depth + 1);
    return below > depth ? below : depth;
}

static void *dive(void *argument)
{
    int *result = argument;
    for (int i = 0; i < 3; i++)
        *result += descend(0);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    int results[2] = { 0, 0 };
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, dive, &results[i]) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(results[0] == 15000 && results[1] == 15000);
    return 0;
}
