// What is wrong: row 1 of Table 1 of the LOCON paper, an order violation: the total is to be
// reported before it is cleared for the next day, and nothing makes the clearing wait. An
// unexpected value is read due to the premature write.
// Localize: I
// Pattern: W1-R2
// Pairs: 1

#include <assert.h>
#include <pthread.h>

static int total = 42;
static int n_reports;
static int n_days;

static void *report(void *argument)
{
    n_reports++;
    int reported = total; /* tail */ /* falcon */
    assert(reported == 42);
    return argument;
}

static void *next_day(void *argument)
{
    n_days++;
    total = 0; /* head */ /* falcon */
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, report, NULL);
    pthread_create(&threads[1], NULL, next_day, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);

    return 0;
}
