// What is wrong: row 9 of Table 1 of the LOCON paper, two variables: two clerks each look for
// the other one's note and then leave their own. Inconsistent results where both look before
// either has written: neither knows of the other. The second clerk leaves no note if the office
// has closed, so that no two pairs always go together.
// Localize: III pc
// Pairs: 2

#include <assert.h>
#include <pthread.h>

static volatile int first_note;
static int second_note;
static int closed;
static int main_counts[6];
static int first_counts[6];
static int second_counts[6];

static void work(int *counts)
{
    for (int i = 0; i < 6; i++)
        counts[i]++;
}

static void *first_clerk(void *argument)
{
    (void)argument;
    work(first_counts);
    long seen = second_note; /* head 1 */
    work(first_counts);
    first_note = 1; /* tail 2 */
    return (void *)seen;
}

static void *second_clerk(void *argument)
{
    (void)argument;
    work(second_counts);
    long seen = first_note; /* head 2 */
    if (closed)
        return (void *)-1L;
    work(second_counts);
    second_note = 1; /* tail 1 */
    return (void *)seen;
}

int main(void)
{
    pthread_t threads[2];
    void *first_saw, *second_saw;

    pthread_create(&threads[0], NULL, first_clerk, NULL);
    pthread_create(&threads[1], NULL, second_clerk, NULL);
    work(main_counts);
    work(main_counts);
    closed = 1;
    pthread_join(threads[0], &first_saw);
    pthread_join(threads[1], &second_saw);
    assert((long)first_saw != 0 || (long)second_saw != 0);
    return 0;
}
