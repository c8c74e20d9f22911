// What is wrong: two threads add to every cell of a matrix, each cell read under its row's lock
// and written under its row's lock, but the lock is let go in between: every one of the 100
// cells is an atomicity violation of its own (R-W-W), all on the same two lines.
// Hunt: fails
// Kind: atomicity
// Guilty: 2 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>

#define N 10

struct matrix {
    pthread_mutex_t locks[N];
    int cells[N][N];
};

static struct matrix matrix;

static int get(struct matrix *matrix, int row, int column)
{
    pthread_mutex_lock(&matrix->locks[row]);
    int value = matrix->cells[row][column]; /* guilty */
    pthread_mutex_unlock(&matrix->locks[row]);
    return value;
}

static void set(struct matrix *matrix, int row, int column, int value)
{
    pthread_mutex_lock(&matrix->locks[row]);
    matrix->cells[row][column] = value; /* guilty */
    pthread_mutex_unlock(&matrix->locks[row]);
}

/* One goes by rows from the first, the other by columns from the last. */
static void *add_by_rows(void *argument)
{
    for (int row = 0; row < N; row++)
        for (int column = 0; column < N; column++)
            set(&matrix, row, column, get(&matrix, row, column) + 1);
    return argument;
}

static void *add_by_columns(void *argument)
{
    for (int column = N; column-- > 0;)
        for (int row = N; row-- > 0;)
            set(&matrix, row, column, get(&matrix, row, column) + 2);
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    for (int row = 0; row < N; row++)
        pthread_mutex_init(&matrix.locks[row], NULL);
    pthread_create(&threads[0], NULL, add_by_rows, NULL);
    pthread_create(&threads[1], NULL, add_by_columns, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int row = 0; row < N; row++)
        for (int column = 0; column < N; column++)
            assert(matrix.cells[row][column] == 3);
    return 0;
}
