// What is wrong: the trace of figure 3 of the PECAN paper as a program: `x` is read at v2 and
// again at v5, both under the lock, and the other thread's write v8 fits in between, at v4,
// where the lock is free (R-W-R). Node numbers are in the comments, but for these three.
// Hunt: fails
// Kind: atomicity
// Guilty: 3 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int x = 1;
static int y;

static void *first(void *argument)
{
    pthread_mutex_lock(&lock);      /* v1 */
    int before = x; /* guilty */
    pthread_mutex_unlock(&lock);    /* v3 */
    pthread_mutex_lock(&lock);      /* v4 */
    int after = x; /* guilty */
    pthread_mutex_unlock(&lock);    /* v6 */
    assert(before == after);
    return argument;
}

static void *second(void *argument)
{
    pthread_mutex_lock(&lock);      /* v7 */
    x = 2; /* guilty */
    y = x;
    pthread_mutex_unlock(&lock);    /* v9 */
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(x == 2 && y == 2);
    return 0;
}
