// What is wrong: as table_10.c, with two writers that take turns, so that the versions they write
// grow; the reader knows nothing of their lock. It reads the new x and the old y in between two
// writes of the same thread. By the code alone both pairs are in a passing run together, where
// the reader comes between one writer and the other.
// Localize: III thread
// Pairs: 2

#include <assert.h>
#include <pthread.h>

static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER;
static int version;
static int x;
static int y;
static int writer_counts[4];
static int reader_counts[4];

static void work(int *counts)
{
    for (int i = 0; i < 4; i++)
        counts[i]++;
}

static void *write_both(void *argument)
{
    pthread_mutex_lock(&writers);
    int mine = ++version;
    x = mine; /* head 1 */
    work(writer_counts);
    y = mine; /* tail 2 */
    pthread_mutex_unlock(&writers);
    return argument;
}

static void *read_both(void *argument)
{
    (void)argument;
    int seen_x = x; /* tail 1 */
    work(reader_counts);
    int seen_y = y; /* head 2 */
    return (void *)(long)(seen_x > seen_y);
}

int main(void)
{
    pthread_t threads[3];
    void *wrong;

    pthread_create(&threads[0], NULL, write_both, NULL);
    pthread_create(&threads[1], NULL, read_both, NULL);
    pthread_create(&threads[2], NULL, write_both, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], &wrong);
    pthread_join(threads[2], NULL);
    assert(!wrong);
    return 0;
}
