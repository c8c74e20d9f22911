// About: pthread_cancel at pthread_cond_wait: the cleanup handler runs with the mutex held.
// Covers: pthread_cancel, pthread_cond_wait
// Outcome: exit 0
#include <assert.h>
#include <errno.h>
#include <pthread.h>

static pthread_mutex_t lock;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static pthread_cond_t started = PTHREAD_COND_INITIALIZER;
static int n_waiting, n_cleaned;

static void clean(void *argument)
{
    (void)argument;
    assert(pthread_mutex_lock(&lock) == EDEADLK);
    n_cleaned++;
    assert(pthread_mutex_unlock(&lock) == 0);
}

static void *wait(void *argument)
{
    assert(pthread_mutex_lock(&lock) == 0);
    pthread_cleanup_push(clean, argument);
    n_waiting++;
    assert(pthread_cond_signal(&started) == 0);
    for (;;)
        pthread_cond_wait(&never, &lock);
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&lock, &attributes);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, wait, NULL) == 0);
    assert(pthread_mutex_lock(&lock) == 0);
    while (n_waiting < 3)
        assert(pthread_cond_wait(&started, &lock) == 0);
    assert(pthread_mutex_unlock(&lock) == 0);
    for (int i = 0; i < 3; i++) {
        void *result;
        assert(pthread_cancel(threads[i]) == 0);
        assert(pthread_join(threads[i], &result) == 0 && result == PTHREAD_CANCELED);
        assert(n_cleaned == i + 1);
    }
    return 0;
}
