// What is wrong: row 14 of Table 1 of the LOCON paper, two variables: one thread writes the owner
// and then raises the flag that goes with it; the other one looks at the flag and then writes
// the owner. Inconsistent results: it has seen no flag, and is the owner in the end. It does not
// write if the office has closed, so that no two pairs always go together.
// Localize: III pc
// Pairs: 2

#include <assert.h>
#include <pthread.h>

static int owner;
static int flag;
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

static void *first(void *argument)
{
    work(first_counts);
    owner = 1; /* head 1 */
    work(first_counts);
    flag = 1; /* tail 2 */
    return argument;
}

static void *second(void *argument)
{
    (void)argument;
    work(second_counts);
    long seen = flag; /* head 2 */
    if (!closed) {
        work(second_counts);
        owner = 2; /* tail 1 */
    }
    return (void *)seen;
}

int main(void)
{
    pthread_t threads[2];
    void *seen;

    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    work(main_counts);
    work(main_counts);
    closed = 1;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], &seen);
    assert(peek(&owner) == 1 || (long)seen == 1);
    return 0;
}
