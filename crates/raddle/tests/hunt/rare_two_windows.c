// What is wrong: a leader's lease is renewed in two steps, and so is its term. A follower takes
// over wrongly only if it looks at the lease within the first, and at the term within the
// second, and does its own long work in between.
// Hunt: fails
// Kind: atomicity, multi-variable
// Guilty: 6 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#define N_ENTRIES 100

static _Atomic int lease = 1;
static _Atomic int term = 7;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int entries[N_ENTRIES];
static int n_replicated, n_applied;
static _Atomic int n_leaders = 1;

static void replicate(int n)
{
    for (int i = 0; i < n; i++) {
        pthread_mutex_lock(&lock);
        entries[n_replicated++ % N_ENTRIES] = i;
        pthread_mutex_unlock(&lock);
    }
}

static void apply(int n)
{
    for (int i = 0; i < n; i++) {
        pthread_mutex_lock(&lock);
        n_applied += entries[i] >= 0;
        pthread_mutex_unlock(&lock);
    }
}

static void *lead(void *argument)
{
    replicate(20);
    atomic_store(&lease, 0); /* guilty */
    atomic_store(&lease, 1); /* guilty */
    replicate(60);
    atomic_store(&term, 0); /* guilty */
    atomic_store(&term, 8); /* guilty */
    return argument;
}

static void *follow(void *argument)
{
    apply(10);
    int expired = atomic_load(&lease) == 0; /* guilty */
    apply(20);
    if (expired && atomic_load(&term) == 0) /* guilty */
        atomic_fetch_add(&n_leaders, 1);
    return argument;
}

int main(void)
{
    pthread_t leader, follower;

    pthread_create(&leader, NULL, lead, NULL);
    pthread_create(&follower, NULL, follow, NULL);
    pthread_join(leader, NULL);
    pthread_join(follower, NULL);
    assert(n_replicated == 80 && n_applied == 30);
    assert(atomic_load(&n_leaders) == 1);
    return 0;
}
