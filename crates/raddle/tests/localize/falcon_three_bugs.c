// What is wrong: three bugs in one program, each with an assertion of its own: a total is cleared
// before it is reported (W-R), a level changes between two looks at it (R-W-R), and a number is
// overwritten before it is read back (W-W-R). The failing runs of one are no witnesses against
// another: they are grouped by the assertion. Marks are numbered by group, in this order; of the
// third bug's two pairs the first is marked.
// Localize: I
// Pattern: W1-R2, R1-W2-R1, W1-W2-R1
// Pairs: 1
// Groups: 3

#include <assert.h>
#include <pthread.h>

static volatile int total = 42;
static volatile int level = 1;
static volatile int last_id;
static int first_counts[4];
static int second_counts[4];

static void work(int *counts)
{
    for (int i = 0; i < 4; i++)
        counts[i]++;
}

static void *first(void *argument)
{
    int reported = total; /* tail 1 */ /* falcon 1 */
    assert(reported == 42);

    int before = level; /* head 2 */ /* falcon 2 */
    work(first_counts);
    int after = level; /* falcon 2 */
    assert(before == after);

    last_id = 1; /* head 3 */ /* falcon 3 */
    work(first_counts);
    int mine = last_id; /* falcon 3 */
    assert(mine == 1);
    return argument;
}

static void *second(void *argument)
{
    level = 2; /* tail 2 */ /* falcon 2 */
    work(second_counts);
    last_id = 2; /* tail 3 */ /* falcon 3 */
    work(second_counts);
    total = 0; /* head 1 */ /* falcon 1 */
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
