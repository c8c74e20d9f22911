// What is wrong: row 3 of Table 1 of the LOCON paper, an order violation: a worker is to clear
// the state when it begins, and the other one to set it afterwards, but nothing makes it wait.
// The first write is covered by the second.
// Localize: I
// Pattern: W1-W2
// Pairs: 1

#include <assert.h>
#include <pthread.h>

enum { CLEARED = 1, READY = 2 };

static int state;
static int n_begun;
static int n_set;

/* Not instrumented: the end result is looked at without an access that would be seen. */
__attribute__((noinline, no_sanitize("thread"))) static int peek(const int *at)
{
    return *(const volatile int *)at;
}

static void *begin(void *argument)
{
    n_begun++;
    state = CLEARED; /* tail */ /* falcon */
    return argument;
}

static void *get_ready(void *argument)
{
    n_set++;
    state = READY; /* head */ /* falcon */
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, begin, NULL);
    pthread_create(&threads[1], NULL, get_ready, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);

    assert(peek(&state) == READY);
    return 0;
}
