// Nothing is wrong, as far as can be told: the matrix of the PENELOPE paper (section 2). Each of
// two threads has half of the rows; for each cell it adds up the cell and its eight neighbours,
// each under the cell's lock, and writes the sum. The threads meet at the two rows in the
// middle: twenty cells are accessed by both, and whatever comes out is right.
// Hunt: clean

#include <pthread.h>

enum { N = 10 };

static pthread_mutex_t locks[N][N];
static int cells[N][N];

static int get(int row, int column)
{
    pthread_mutex_lock(&locks[row][column]);
    int value = cells[row][column];
    pthread_mutex_unlock(&locks[row][column]);
    return value;
}

static void set(int row, int column, int value)
{
    pthread_mutex_lock(&locks[row][column]);
    cells[row][column] = value;
    pthread_mutex_unlock(&locks[row][column]);
}

static void *update(void *argument)
{
    int from = *(int *)argument;
    for (int row = from; row < from + N / 2; row++) {
        for (int column = 0; column < N; column++) {
            int sum = 0;
            for (int i = row - 1; i <= row + 1; i++)
                for (int j = column - 1; j <= column + 1; j++)
                    if (i >= 0 && i < N && j >= 0 && j < N)
                        sum += get(i, j);
            set(row, column, sum);
        }
    }
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    int from[2] = {0, N / 2};

    for (int row = 0; row < N; row++) {
        for (int column = 0; column < N; column++) {
            pthread_mutex_init(&locks[row][column], NULL);
            cells[row][column] = 1;
        }
    }
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, update, &from[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return cells[0][0] == 0;
}
