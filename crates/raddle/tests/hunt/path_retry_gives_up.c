// What is wrong: a ledger is updated by compare-and-swap. Whoever loses twice gives up on that
// and adds with a load and a store instead, which may lose another's update. One lost swap is
// needed to come to the second try, one more to come to the bug, and a third to see it.
// Hunt: fails
// Kind: atomicity
// Guilty: 3 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#define N_CLERKS 3
#define N_ENTRIES 4

static _Atomic int ledger;
static _Atomic int n_slow;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_entries;

static int try_add(int amount)
{
    int seen = atomic_load(&ledger);
    return atomic_compare_exchange_strong(&ledger, &seen, seen + amount); /* guilty */
}

static void add_slowly(int amount)
{
    atomic_fetch_add(&n_slow, 1);
    int seen = atomic_load(&ledger); /* guilty */
    atomic_store(&ledger, seen + amount); /* guilty */
}

static void add(int amount)
{
    for (int tries = 0; tries < 2; tries++)
        if (try_add(amount))
            return;
    add_slowly(amount);
}

static void *clerk(void *argument)
{
    for (int i = 0; i < N_ENTRIES; i++) {
        add(1);
        pthread_mutex_lock(&lock);
        n_entries++;
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

int main(void)
{
    pthread_t clerks[N_CLERKS];

    for (int i = 0; i < N_CLERKS; i++)
        pthread_create(&clerks[i], NULL, clerk, NULL);
    for (int i = 0; i < N_CLERKS; i++)
        pthread_join(clerks[i], NULL);
    assert(n_entries == N_CLERKS * N_ENTRIES);
    assert(atomic_load(&ledger) == n_entries);
    return 0;
}
