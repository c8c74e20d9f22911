// About: pthread_cond_broadcast, pthread_cond_destroy, which waits for those who were woken.
// Covers: pthread_cond_broadcast, pthread_cond_destroy
// Outcome: exit 0
//
// A gate opens for all who wait. The condition variable is destroyed right after the
// broadcast, which POSIX allows.
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WAITERS = 5 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrival = PTHREAD_COND_INITIALIZER;
static pthread_cond_t *gate;
static int n_waiting, n_through, open;

static void *pass(void *argument)
{
    assert(pthread_mutex_lock(&lock) == 0);
    n_waiting++;
    assert(pthread_cond_signal(&arrival) == 0);
    while (!open)
        assert(pthread_cond_wait(gate, &lock) == 0);
    n_through++;
    assert(pthread_mutex_unlock(&lock) == 0);
    return argument;
}

int main(void)
{
    gate = malloc(sizeof *gate);
    assert(gate && pthread_cond_init(gate, NULL) == 0);
    pthread_t threads[WAITERS];
    for (int i = 0; i < WAITERS; i++)
        assert(pthread_create(&threads[i], NULL, pass, NULL) == 0);

    assert(pthread_mutex_lock(&lock) == 0);
    while (n_waiting < WAITERS)
        assert(pthread_cond_wait(&arrival, &lock) == 0);
    assert(n_through == 0);
    open = 1;
    assert(pthread_cond_broadcast(gate) == 0);
    assert(pthread_mutex_unlock(&lock) == 0);

    assert(pthread_cond_destroy(gate) == 0);
    memset(gate, 0xff, sizeof *gate);
    free(gate);
    for (int i = 0; i < WAITERS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_through == WAITERS);
    return 0;
}
