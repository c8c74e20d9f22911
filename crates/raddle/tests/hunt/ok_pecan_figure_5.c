// Nothing is wrong: figure 5 of the PECAN paper as it stands. v3 and v8 hold no common lock, and
// look like a race; but v2 comes before v5, and v3 is done under the lock that v6 has to get
// first: v8 always comes after v3. Node numbers are in the comments.
// Hunt: clean

#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t other;
static volatile int x;
static int n_turns;

static void *second(void *argument)
{
    int seen;                       /* v5: begins */
    pthread_mutex_lock(&lock);      /* v6 */
    n_turns++;
    pthread_mutex_unlock(&lock);    /* v7 */
    seen = x;                       /* v8 */
    assert(seen == 2);
    return argument;
}

static void *first(void *argument)
{
    pthread_mutex_lock(&lock);                          /* v1 */
    n_turns++;
    pthread_create(&other, NULL, second, NULL);         /* v2 */
    x = 1;
    x = 2;                                              /* v3 */
    pthread_mutex_unlock(&lock);                        /* v4 */
    return argument;
}

int main(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, first, NULL);
    pthread_join(thread, NULL);
    pthread_join(other, NULL);
    assert(n_turns == 2 && x == 2);
    return 0;
}
