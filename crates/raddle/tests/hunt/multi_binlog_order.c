// What is wrong: as in MySQL (bug 169), a statement changes the table under one lock and is
// written to the binary log under another. Two statements may change the table in one order
// and stand in the log in the other: a replica that follows the log ends up different.
// Hunt: fails
// Kind: multi-variable
// Guilty: 2 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define N_ENTRIES_MAX 16

enum operation { ADD_ROWS, DELETE_ALL };

struct statement {
    enum operation operation;
    int n_rows;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static int n_rows;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static struct statement entries[N_ENTRIES_MAX];
static int n_entries;

static int apply(const struct statement *statement, int rows)
{
    return statement->operation == DELETE_ALL ? 0 : rows + statement->n_rows;
}

static void execute(const struct statement *statement)
{
    pthread_mutex_lock(&table_lock);
    n_rows = apply(statement, n_rows); /* guilty */
    pthread_mutex_unlock(&table_lock);

    pthread_mutex_lock(&log_lock);
    entries[n_entries++] = *statement; /* guilty */
    pthread_mutex_unlock(&log_lock);
}

static void *writer(void *argument)
{
    static const struct statement inserts[2] = {{ADD_ROWS, 1}, {ADD_ROWS, 2}};
    execute(&inserts[0]);
    execute(&inserts[1]);
    return argument;
}

static void *cleaner(void *argument)
{
    static const struct statement truncate = {DELETE_ALL, 0};
    execute(&truncate);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    int replica = 0;

    pthread_create(&threads[0], NULL, writer, NULL);
    pthread_create(&threads[1], NULL, cleaner, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);

    for (int i = 0; i < n_entries; i++)
        replica = apply(&entries[i], replica);
    printf("%d rows here, %d there\n", n_rows, replica);
    assert(replica == n_rows);
    return 0;
}
