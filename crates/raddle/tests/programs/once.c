// About: pthread_once from several threads, also inside of another pthread_once.
// Covers: pthread_once
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <sched.h>

enum { THREADS = 4 };

static pthread_once_t outer_once = PTHREAD_ONCE_INIT;
static pthread_once_t inner_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_outer, n_inner, table[16];

static void init_inner(void)
{
    n_inner++;
    sched_yield();
}

static void init_outer(void)
{
    assert(pthread_once(&inner_once, init_inner) == 0);
    pthread_mutex_lock(&lock);
    n_outer++;
    for (int i = 0; i < 16; i++)
        table[i] = i * i;
    pthread_mutex_unlock(&lock);
}

static void *use(void *argument)
{
    pthread_once_t *first = argument;
    if (first == &inner_once)
        assert(pthread_once(&inner_once, init_inner) == 0);
    assert(pthread_once(&outer_once, init_outer) == 0);
    assert(n_outer == 1 && n_inner == 1 && table[15] == 225);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, use, i % 2 ? &inner_once : &outer_once) == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    return 0;
}
