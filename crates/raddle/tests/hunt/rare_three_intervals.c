// What is wrong: a remote control counts presses of its button in three intervals, and takes 2-1-2
// for the code that resets it. Presses come from another thread, and nothing makes the intervals
// equal, so presses that were meant as something else may add up to the code. That takes three
// preemptions, each after the right number of presses. Every press and every look is the same
// line, so no pair of accesses is peculiar to the failure, and nothing can be predicted.
// Hunt: fails
// Kind: atomicity, order
// Guilty: 2 lines
// Shows: assert
// Runs: 5000

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#define N_PRESSES 9
#define N_INTERVALS 3
#define N_SWITCHES 4

static _Atomic int n_presses;

static void settle(volatile int *switches)
{
    for (int i = 0; i < N_SWITCHES; i++)
        switches[i] = !switches[i];
}

static void *press(void *argument)
{
    volatile int switches[N_SWITCHES] = {0};

    for (int i = 0; i < N_PRESSES; i++) {
        settle(switches);
        atomic_fetch_add(&n_presses, 1); /* guilty */
    }
    return argument;
}

static void *decode(void *argument)
{
    static const int reset[N_INTERVALS] = {2, 1, 2};
    volatile int switches[N_SWITCHES] = {0};
    int n_before = 0, n_matching = 0;

    for (int i = 0; i <= N_INTERVALS; i++) {
        int n = atomic_load(&n_presses); /* guilty */
        if (i > 0)
            n_matching += n - n_before == reset[i - 1];
        n_before = n;
        settle(switches);
    }
    assert(n_matching < N_INTERVALS);
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, press, NULL);
    pthread_create(&threads[1], NULL, decode, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
