// What is wrong: figure 3 of the LOCON paper: the pointer is cleared before the other thread
// goes by it. Where this happens, the count has been read before it is written, too, and that
// pair comes first; but it only says so because the whole of one thread's stretch came before
// that of the other. It makes the pair that is to blame predictable, and is dropped. The numbers
// of the paper's lines are in the comments.
// Localize: I
// Pattern: W1-R2
// Pairs: 1

#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int value = 7;
static int *y = &value;
static int x;

static void *first(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&lock);
    x = 1;                                /* 1 */
    int *at = y; /* tail */ /* falcon */  /* 2 */
    long got = *at;
    pthread_mutex_unlock(&lock);
    return (void *)got;
}

static void *second(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&lock);
    y = NULL; /* head */ /* falcon */     /* 3 */
    long got = x;                         /* 4 */
    pthread_mutex_unlock(&lock);
    return (void *)got;
}

int main(void)
{
    pthread_t threads[2];
    void *got[2];

    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], &got[0]);
    pthread_join(threads[1], &got[1]);
    assert((long)got[0] == 7 && (long)got[1] == 1);
    return 0;
}
