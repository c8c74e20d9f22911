// About: pthread_key_create, pthread_setspecific, destructors that lock, that set the value
// again, that run on pthread_exit of the main thread.
// Covers: free, malloc, pthread_mutex_lock, pthread_mutex_unlock
// Outcome: exit 0
#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 4 };

static pthread_key_t key, stubborn, main_key;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sum, n_stubborn;

static void add_up(void *value)
{
    pthread_mutex_lock(&lock);
    sum += *(int *)value;
    pthread_mutex_unlock(&lock);
    free(value);
}

static void comes_back(void *value)
{
    pthread_mutex_lock(&lock);
    n_stubborn++;
    pthread_mutex_unlock(&lock);
    pthread_setspecific(stubborn, value);
}

static void last_words(void *value)
{
    (void)value;
    pthread_mutex_lock(&lock);
    assert(sum == 0 + 1 + 2 + 3);
    assert(n_stubborn == THREADS * PTHREAD_DESTRUCTOR_ITERATIONS);
    pthread_mutex_unlock(&lock);
}

static void *work(void *argument)
{
    assert(pthread_getspecific(key) == NULL);
    int *value = malloc(sizeof *value);
    *value = *(int *)argument;
    assert(pthread_setspecific(key, value) == 0);
    assert(pthread_setspecific(stubborn, value) == 0);
    assert(pthread_getspecific(key) == value);
    return NULL;
}

int main(void)
{
    int numbers[THREADS];
    pthread_t threads[THREADS];
    assert(pthread_key_create(&key, add_up) == 0);
    assert(pthread_key_create(&stubborn, comes_back) == 0);
    assert(pthread_key_create(&main_key, last_words) == 0);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(pthread_key_delete(key) == 0);
    assert(pthread_setspecific(main_key, &lock) == 0);
    pthread_exit(NULL);
}
