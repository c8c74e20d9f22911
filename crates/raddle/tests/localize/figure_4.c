// What is wrong: figure 4 of the LOCON paper: a thread writes x and y in a loop, both at once
// under the lock; another one reads x and y, and lets go of the lock in between. It reads the x
// from before an iteration and the y from after it. Each two of a failing run's pairs are in a
// passing run too, where the reads are between two iterations: the two writes are of different
// iterations then, and of the same one in a failing run. The numbers of the paper's lines are in
// the comments.
// Localize: III loop
// Pairs: 2

#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
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
    long n = (long)argument;

    for (int i = 1; i <= n; i++) {        /* 1 */
        pthread_mutex_lock(&lock);
        x = i % 2; /* tail 1 */           /* 2 */
        y = i % 2; /* head 2 */           /* 3 */
        pthread_mutex_unlock(&lock);
        work(writer_counts);
    }
    return NULL;
}

static void *read_both(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&lock);
    int seen_x = x; /* head 1 */          /* 5 */
    pthread_mutex_unlock(&lock);
    work(reader_counts);
    work(reader_counts);
    pthread_mutex_lock(&lock);
    int seen_y = y; /* tail 2 */          /* 6 */
    pthread_mutex_unlock(&lock);
    return (void *)(long)(seen_x == seen_y);
}

int main(void)
{
    pthread_t threads[2];
    void *same;

    pthread_create(&threads[0], NULL, write_both, (void *)2L);
    pthread_create(&threads[1], NULL, read_both, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], &same);
    assert(same);
    return 0;
}
