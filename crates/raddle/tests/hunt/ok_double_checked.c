// Nothing is wrong: a table made on first use and checked twice. The pointer is atomic, and is
// published with release once the table is complete.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define N_SQUARES 8

struct table {
    int n;
    int squares[N_SQUARES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table *_Atomic table;
static int n_made;

static struct table *make_table(void)
{
    struct table *fresh = calloc(1, sizeof *fresh);
    for (int i = 0; i < N_SQUARES; i++)
        fresh->squares[i] = i * i;
    fresh->n = N_SQUARES;
    n_made++;
    return fresh;
}

static const struct table *get_table(void)
{
    struct table *found = atomic_load_explicit(&table, memory_order_acquire);
    if (found == NULL) {
        pthread_mutex_lock(&lock);
        found = atomic_load_explicit(&table, memory_order_relaxed);
        if (found == NULL) {
            found = make_table();
            atomic_store_explicit(&table, found, memory_order_release);
        }
        pthread_mutex_unlock(&lock);
    }
    return found;
}

static void *use(void *argument)
{
    const struct table *squares = get_table();
    assert(squares->n == N_SQUARES);
    for (int i = 0; i < squares->n; i++)
        assert(squares->squares[i] == i * i);
    return argument;
}

int main(void)
{
    pthread_t threads[3];

    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, use, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert(n_made == 1);
    free(atomic_load(&table));
    return 0;
}
