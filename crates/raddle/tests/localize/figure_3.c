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
    int *got = argument;

    pthread_mutex_lock(&lock);
    x = 1;                                /* 1 */
    int *at = y; /* tail */ /* falcon */  /* 2 */
    *got = *at;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *second(void *argument)
{
    int *got = argument;

    pthread_mutex_lock(&lock);
    y = NULL; /* head */ /* falcon */     /* 3 */
    *got = x;                             /* 4 */
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    int got[2];

    pthread_create(&threads[0], NULL, first, &got[0]);
    pthread_create(&threads[1], NULL, second, &got[1]);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(got[0] == 7 && got[1] == 1);
    return 0;
}
