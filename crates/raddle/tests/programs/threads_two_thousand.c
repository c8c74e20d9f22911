// About: two thousand threads at a time, all waiting for one mutex.
// Covers: pthread_create, pthread_join, pthread_mutex_lock
// Outcome: exit 0
// Seeds: 1

#include <assert.h>
#include <pthread.h>

#define THREADS 2000

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static int n_passed;
static pthread_t threads[THREADS];

static void *pass(void *unused)
{
    pthread_mutex_lock(&gate);
    n_passed++;
    pthread_mutex_unlock(&gate);
    return unused;
}

int main(void)
{
    pthread_attr_t small;
    assert(pthread_attr_init(&small) == 0);
    assert(pthread_attr_setstacksize(&small, 64 << 10) == 0);
    pthread_mutex_lock(&gate);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], &small, pass, NULL) == 0);
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_passed == THREADS);
    return 0;
}
