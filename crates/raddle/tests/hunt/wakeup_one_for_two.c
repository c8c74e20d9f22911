// What is wrong: producers and consumers of a one-place mailbox wait on the same condition
// variable, and `pthread_cond_signal` wakes one of them. If that is one of the wrong kind, it
// goes back to sleep, and the one that could go on is never woken.
// Hunt: fails
// Kind: order, deadlock, failure
// Guilty: 4 lines
// Shows: deadlock, lost-wakeup

#include <assert.h>
#include <pthread.h>

#define N_PAIRS 2
#define N_LETTERS 2

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int full;
static int letter;
static int sum;

static void put(int value)
{
    pthread_mutex_lock(&lock);
    while (full)
        pthread_cond_wait(&changed, &lock); /* guilty */
    letter = value;
    full = 1;
    pthread_cond_signal(&changed); /* guilty */
    pthread_mutex_unlock(&lock);
}

static int take(void)
{
    pthread_mutex_lock(&lock);
    while (!full)
        pthread_cond_wait(&changed, &lock); /* guilty */
    int value = letter;
    full = 0;
    pthread_cond_signal(&changed); /* guilty */
    pthread_mutex_unlock(&lock);
    return value;
}

static void *produce(void *argument)
{
    for (int i = 0; i < N_LETTERS; i++)
        put(i + 1);
    return argument;
}

static void *consume(void *argument)
{
    int own = 0;
    for (int i = 0; i < N_LETTERS; i++)
        own += take();
    pthread_mutex_lock(&lock);
    sum += own;
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_t threads[2 * N_PAIRS];

    for (int i = 0; i < N_PAIRS; i++) {
        pthread_create(&threads[2 * i], NULL, produce, NULL);
        pthread_create(&threads[2 * i + 1], NULL, consume, NULL);
    }
    for (int i = 0; i < 2 * N_PAIRS; i++)
        pthread_join(threads[i], NULL);
    assert(sum == 3 * N_PAIRS);
    return 0;
}
