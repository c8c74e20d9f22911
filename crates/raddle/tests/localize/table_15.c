// What is wrong: row 15 of Table 1 of the LOCON paper, two variables: one thread writes a street
// and then its town, the other one a town and then its street. Inconsistent results due to
// improper writes: the second thread's street in the first one's town. The second thread writes
// no street if the office has closed, so that no two pairs always go together.
// Localize: III pc
// Pairs: 2

#include <assert.h>
#include <pthread.h>

static int street;
static int town;
static int closed;
static int main_counts[6];
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

static void *move_first(void *argument)
{
    work(first_counts);
    street = 1; /* head 1 */
    work(first_counts);
    town = 1; /* tail 2 */
    return argument;
}

static void *move_second(void *argument)
{
    work(second_counts);
    town = 2; /* head 2 */
    if (!closed) {
        work(second_counts);
        street = 2; /* tail 1 */
    }
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, move_first, NULL);
    pthread_create(&threads[1], NULL, move_second, NULL);
    work(main_counts);
    work(main_counts);
    closed = 1;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(!(peek(&street) == 2 && peek(&town) == 1));
    return 0;
}
