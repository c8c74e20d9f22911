// About: C11's thread-specific storage: each thread has its own value, and its destructor runs at the end.
// Covers: tss_create, tss_delete, tss_get, tss_set
// Outcome: exit 0

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <threads.h>

static tss_t key;
static atomic_int n_destroyed;

static void destroy(void *value)
{
    free(value);
    atomic_fetch_add(&n_destroyed, 1);
}

static int use(void *argument)
{
    assert(tss_get(key) == NULL);
    int *value = malloc(sizeof *value);
    *value = *(int *)argument;
    assert(tss_set(key, value) == thrd_success);
    thrd_yield();
    assert(tss_get(key) == value && *value == *(int *)argument);
    return *value;
}

int main(void)
{
    enum { THREADS = 3 };
    thrd_t threads[THREADS];
    int numbers[THREADS], result;
    assert(tss_create(&key, destroy) == thrd_success);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i + 7;
        assert(thrd_create(&threads[i], use, &numbers[i]) == thrd_success);
    }
    for (int i = 0; i < THREADS; i++) {
        assert(thrd_join(threads[i], &result) == thrd_success);
        assert(result == i + 7);
    }
    assert(atomic_load(&n_destroyed) == THREADS);
    tss_delete(key);
    return 0;
}
