// What is wrong: row 4 of Table 1 of the LOCON paper, W-W-R on one variable: a thread writes
// the number of its insertion and reads it back, and another insertion comes in between. The
// first write is covered by the second.
// Localize: I
// Pattern: W1-W2-R1
// Pairs: 2

#include <assert.h>
#include <pthread.h>

static volatile int last_id;
static int n_first[4];
static int n_second[4];

static void work(int *counts)
{
    for (int i = 0; i < 4; i++)
        counts[i]++;
}

static void *insert_first(void *argument)
{
    work(n_first);
    last_id = 1; /* head 1 */ /* falcon */
    work(n_first);
    int mine = last_id; /* tail 2 */ /* falcon */
    assert(mine == 1);
    return argument;
}

static void *insert_second(void *argument)
{
    work(n_second);
    last_id = 2; /* tail 1 */ /* head 2 */ /* falcon */
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, insert_first, NULL);
    pthread_create(&threads[1], NULL, insert_second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);

    return 0;
}
