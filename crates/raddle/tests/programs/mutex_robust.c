// About: robust mutexes whose owner ends: EOWNERDEAD, pthread_mutex_consistent, ENOTRECOVERABLE.
// Covers: pthread_mutex_trylock
// Outcome: exit 0
//
// The waiters may come before or after the owner's end; both ways exactly one of them
// is told that the owner has died.
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock;
static atomic_int n_told;
static int state;

static void *dies_holding(void *argument)
{
    (void)argument;
    assert(pthread_mutex_lock(&lock) == 0);
    state = -1;
    return NULL;
}

static void *repairs(void *argument)
{
    (void)argument;
    int result = pthread_mutex_lock(&lock);
    if (result == EOWNERDEAD) {
        assert(state == -1);
        state = 0;
        n_told++;
        assert(pthread_mutex_consistent(&lock) == 0);
    } else {
        assert(result == 0);
    }
    if (state >= 0)
        state++;
    assert(pthread_mutex_unlock(&lock) == 0);
    return NULL;
}

int main(void)
{
    pthread_mutexattr_t attributes;
    assert(pthread_mutexattr_init(&attributes) == 0);
    assert(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0);
    assert(pthread_mutex_init(&lock, &attributes) == 0);

    pthread_t owner, threads[3];
    assert(pthread_create(&owner, NULL, dies_holding, NULL) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, repairs, NULL) == 0);
    assert(pthread_join(owner, NULL) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    // Waiters that were through before the owner locked leave the repair to us.
    repairs(NULL);
    assert(n_told == 1);
    assert(state >= 1);

    // Unlocked without repair, it is lost for good.
    assert(pthread_create(&owner, NULL, dies_holding, NULL) == 0);
    assert(pthread_join(owner, NULL) == 0);
    assert(pthread_mutex_trylock(&lock) == EOWNERDEAD);
    assert(pthread_mutex_unlock(&lock) == 0);
    assert(pthread_mutex_lock(&lock) == ENOTRECOVERABLE);
    assert(pthread_mutex_trylock(&lock) == ENOTRECOVERABLE);
    assert(pthread_mutex_destroy(&lock) == 0);
    return 0;
}
