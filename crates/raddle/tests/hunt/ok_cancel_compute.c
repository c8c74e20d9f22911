// Nothing is wrong: searchers compute without blocking and look for a cancellation once in a while.
// The first that finds a divisor cancels the others; while it stores its result it cannot be
// canceled itself.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

enum { SEARCHERS = 3, LOOK = 16 };

static const unsigned long NUMBER = 65537UL * 101;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t found = PTHREAD_COND_INITIALIZER;
static unsigned long divisor;
static int n_ended;

static void count_end(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&lock);
    n_ended++;
    pthread_cond_signal(&found);
    pthread_mutex_unlock(&lock);
}

static void *search(void *argument)
{
    unsigned long from = *(unsigned long *)argument;
    int old;

    pthread_cleanup_push(count_end, NULL);
    for (unsigned long i = from, n = 1;; i += SEARCHERS, n++) {
        if (NUMBER % i == 0) {
            pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
            pthread_mutex_lock(&lock);
            if (divisor == 0)
                divisor = i;
            pthread_cond_signal(&found);
            pthread_mutex_unlock(&lock);
            pthread_setcancelstate(old, NULL);
            break;
        }
        if (n % LOOK == 0)
            pthread_testcancel();
    }
    pthread_cleanup_pop(1);
    return argument;
}

int main(void)
{
    unsigned long starts[SEARCHERS];
    pthread_t searchers[SEARCHERS];

    for (int i = 0; i < SEARCHERS; i++) {
        starts[i] = (unsigned long)i + 2;
        pthread_create(&searchers[i], NULL, search, &starts[i]);
    }
    pthread_mutex_lock(&lock);
    while (divisor == 0)
        pthread_cond_wait(&found, &lock);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < SEARCHERS; i++)
        pthread_cancel(searchers[i]);
    for (int i = 0; i < SEARCHERS; i++) {
        void *result;
        pthread_join(searchers[i], &result);
        assert(result == PTHREAD_CANCELED || result == &starts[i]);
    }
    assert(n_ended == SEARCHERS);
    assert(NUMBER % divisor == 0);
    return 0;
}
