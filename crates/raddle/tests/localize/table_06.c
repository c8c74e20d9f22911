// What is wrong: row 6 of Table 1 of the LOCON paper, R-W-R on one variable: a thread reads the
// level twice and counts on the same value, and another one writes it in between. Inconsistent
// values are read due to the improper write. The pair from this write to the second read is in
// the passing runs too where the write comes before both reads: one pair tells the runs apart.
// Localize: I
// Pattern: R1-W2-R1
// Pairs: 1

#include <assert.h>
#include <pthread.h>

static volatile int level = 1;
static int n_looks[4];
static int n_changes[4];

static void work(int *counts)
{
    for (int i = 0; i < 4; i++)
        counts[i]++;
}

static void *look_twice(void *argument)
{
    work(n_looks);
    int first = level; /* head */ /* falcon */
    work(n_looks);
    int second = level; /* falcon */
    assert(first == second);
    return argument;
}

static void *change(void *argument)
{
    work(n_changes);
    level = 2; /* tail */ /* falcon */
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, look_twice, NULL);
    pthread_create(&threads[1], NULL, change, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);

    return 0;
}
