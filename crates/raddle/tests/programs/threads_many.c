// About: 200 threads at the same time, which a barrier proves.
// Covers: pthread_barrier_init, pthread_barrier_wait
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>

enum { THREADS = 200 };

static pthread_barrier_t all_here;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_here;

static void *work(void *argument)
{
    pthread_barrier_wait(&all_here);
    pthread_mutex_lock(&lock);
    n_here++;
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    static pthread_t threads[THREADS];
    static int numbers[THREADS];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 17);
    pthread_barrier_init(&all_here, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], &small, work, &numbers[i]) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        assert(pthread_join(threads[i], &result) == 0 && result == &numbers[i]);
    }
    assert(n_here == THREADS);
    return 0;
}
