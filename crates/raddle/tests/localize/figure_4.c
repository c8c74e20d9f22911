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
    for (int i = 1; i <= 2; i++) {        /* 1 */
        pthread_mutex_lock(&lock);
        x = i % 2; /* tail 1 */           /* 2 */
        y = i % 2; /* head 2 */           /* 3 */
        pthread_mutex_unlock(&lock);
        work(writer_counts);
    }
    return argument;
}

static void *read_both(void *argument)
{
    int *seen = argument;

    pthread_mutex_lock(&lock);
    seen[0] = x; /* head 1 */             /* 5 */
    pthread_mutex_unlock(&lock);
    work(reader_counts);
    pthread_mutex_lock(&lock);
    seen[1] = y; /* tail 2 */             /* 6 */
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    int seen[2];

    pthread_create(&threads[0], NULL, write_both, NULL);
    pthread_create(&threads[1], NULL, read_both, seen);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(seen[0] == seen[1]);
    return 0;
}
