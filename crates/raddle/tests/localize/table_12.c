// What is wrong: row 12 of Table 1 of the LOCON paper, two variables: two threads both set the
// limits, lower and upper. Inconsistent results due to improper writes where one sets both
// between the steps of the other: the lower limit is above the upper. (The other illegal order
// leaves limits that are too wide only.)
// Localize: III pc
// Pairs: 2

#include <assert.h>
#include <pthread.h>

static int lower;
static int upper = 9;
static int first_counts[6];
static int second_counts[6];

static void work(int *counts)
{
    for (int i = 0; i < 6; i++)
        counts[i]++;
}

/* Not instrumented: the end result is looked at without an access that would be seen. */
__attribute__((noinline, no_sanitize("thread"))) static int peek(const int *at)
{
    return *(const volatile int *)at;
}

static void *set_low_limits(void *argument)
{
    lower = 1; /* head 1 */
    work(first_counts);
    work(first_counts);
    upper = 2; /* tail 2 */
    return argument;
}

static void *set_high_limits(void *argument)
{
    lower = 5; /* tail 1 */
    work(second_counts);
    work(second_counts);
    upper = 6; /* head 2 */
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, set_low_limits, NULL);
    pthread_create(&threads[1], NULL, set_high_limits, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(peek(&lower) <= peek(&upper));
    return 0;
}
