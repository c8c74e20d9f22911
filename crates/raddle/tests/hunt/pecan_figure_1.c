// What is wrong: a reading of figure 1 of the PECAN paper: races on `x` (2,5 and 2,6) that do
// no harm by themselves, and one on `y` (3,7) that leads to ERROR. The statement numbers are
// in the comments; 3 and 7 are the guilty ones.
// Hunt: fails
// Kind: race, order, multi-variable
// Guilty: 2 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int x, y;
static int n_steps;

static void step(void)
{
    pthread_mutex_lock(&lock);
    n_steps++;
    pthread_mutex_unlock(&lock);
}

static void *first(void *argument)
{
    step();                 /* 1 */
    x = 1;                  /* 2 */
    step();
    int seen = y; /* guilty */
    assert(seen == 0 && "ERROR"); /* 4 */
    return argument;
}

static void *second(void *argument)
{
    int before = x;         /* 5 */
    step();
    x = before + 2;         /* 6 */
    step();
    y = 1; /* guilty */
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(x >= 1 && x <= 3);
    assert(y == 1 && n_steps == 4);
    return 0;
}
