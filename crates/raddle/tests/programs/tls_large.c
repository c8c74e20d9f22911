// About: large thread-local data, zeroed and initialized, on a small stack; addresses that are handed on.
// Covers: pthread_barrier_init, pthread_barrier_wait
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

enum { WORDS = 1 << 15 };

static _Thread_local int zeroed[WORDS];
static _Thread_local int initialized[4] = { 1, 2, 3, 4 };
static int *lent;
static pthread_barrier_t barrier;

static void *work(void *argument)
{
    int me = *(int *)argument;
    assert(zeroed[0] == 0 && zeroed[WORDS - 1] == 0 && initialized[3] == 4);
    for (int i = 0; i < WORDS; i += 512)
        zeroed[i] = me;
    initialized[3] += me;
    if (me == 1)
        lent = &zeroed[7];
    pthread_barrier_wait(&barrier);
    if (me == 2)
        *lent = 99;
    pthread_barrier_wait(&barrier);
    assert(zeroed[7] == (me == 1 ? 99 : 0));
    for (int i = 0; i < WORDS; i += 512)
        assert(zeroed[i] == me);
    assert(initialized[3] == 4 + me);
    return NULL;
}

int main(void)
{
    int names[3] = { 1, 2, 3 };
    pthread_t threads[3];
    assert(pthread_barrier_init(&barrier, NULL, 3) == 0);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++)
            assert(pthread_create(&threads[i], NULL, work, &names[i]) == 0);
        for (int i = 0; i < 3; i++)
            assert(pthread_join(threads[i], NULL) == 0);
    }
    assert(zeroed[0] == 0 && initialized[3] == 4);
    return 0;
}
