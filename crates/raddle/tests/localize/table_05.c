// What is wrong: row 5 of Table 1 of the LOCON paper, R-W-W on one variable: interest is added
// to a balance that is read, and written later, and a deposit in between is lost. The first
// write is covered by the second.
// Localize: I
// Pattern: R1-W2-W1
// Pairs: 2

#include <assert.h>
#include <pthread.h>

static int balance = 100;
static int n_accounts[4];
static int n_deposits[4];

static void work(int *counts)
{
    for (int i = 0; i < 4; i++)
        counts[i]++;
}

/* Not instrumented: the end result is looked at without an access that would be seen. */
__attribute__((noinline, no_sanitize("thread"))) static int peek(const int *at)
{
    return *(const volatile int *)at;
}

static void *add_interest(void *argument)
{
    work(n_accounts);
    int before = balance; /* head 1 */ /* falcon */
    work(n_accounts);
    balance = before + 1; /* tail 2 */ /* falcon */
    return argument;
}

static void *set_balance(void *argument)
{
    work(n_deposits);
    balance = 500; /* tail 1 */ /* head 2 */ /* falcon */
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, add_interest, NULL);
    pthread_create(&threads[1], NULL, set_balance, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);

    assert(peek(&balance) >= 500);
    return 0;
}
