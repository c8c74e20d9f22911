// What is wrong: figure 5 of the PECAN paper without the order between v2 and v5: v3 under the
// lock races with v8, which comes after the other thread has let go of the same lock. To bring
// the two together, v1 to v3 must be moved behind v7. Guilty are v3, twice, and v8.
// Hunt: fails
// Kind: race, order, atomicity
// Guilty: 3 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ready;
static int n_turns;
static volatile int x;

static void *first(void *argument)
{
    pthread_mutex_lock(&lock);      /* v1 */
    ready = 1;                      /* v2 */
    x = 1; /* guilty */
    n_turns++;
    x = 0; /* guilty */
    pthread_mutex_unlock(&lock);    /* v4 */
    return argument;
}

static void *second(void *argument)
{
    int mine = 5;                   /* v5 */
    pthread_mutex_lock(&lock);      /* v6 */
    n_turns++;
    mine += ready;
    pthread_mutex_unlock(&lock);    /* v7 */
    int seen = x; /* guilty */
    assert(seen == 0);
    assert(mine == 5 || mine == 6);
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(n_turns == 2);
    return 0;
}
