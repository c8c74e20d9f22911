// About: a program that takes all thread keys that libc has gets as many as it would natively, and
// the last one works like the others: values per thread, a destructor in every round, none after
// the key was deleted and created again.
// Covers: pthread_key_create, pthread_key_delete, pthread_getspecific, pthread_setspecific,
// tss_create, tss_delete, tss_get, tss_set
// Outcome: exit 0
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <threads.h>

static pthread_key_t keys[PTHREAD_KEYS_MAX];
static tss_t last;
static int n_destroyed, n_stubborn, value;

static void destroy(void *mine)
{
    __atomic_add_fetch((int *)mine, 1, __ATOMIC_RELAXED);
}

static void comes_back(void *mine)
{
    __atomic_add_fetch((int *)mine, 1, __ATOMIC_RELAXED);
    assert(tss_get(last) == NULL);
    assert(tss_set(last, mine) == thrd_success);
}

static void *work(void *argument)
{
    for (int i = 0; i < PTHREAD_KEYS_MAX; i++) {
        assert(pthread_getspecific(keys[i]) == NULL);
        assert(pthread_setspecific(keys[i], argument) == 0);
        assert(pthread_getspecific(keys[i]) == argument);
    }
    return NULL;
}

static void *stay(void *argument)
{
    assert(tss_get(last) == NULL);
    assert(tss_set(last, argument) == thrd_success);
    return NULL;
}

static void run(void *(*routine)(void *), void *argument)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, routine, argument) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0);
}

int main(void)
{
    pthread_key_t one_more;
    for (int i = 0; i < PTHREAD_KEYS_MAX; i++)
        assert(pthread_key_create(&keys[i], destroy) == 0);
    assert(pthread_key_create(&one_more, NULL) == EAGAIN);
    assert(tss_create(&last, NULL) == thrd_error);
    run(work, &n_destroyed);
    assert(n_destroyed == 2 * PTHREAD_KEYS_MAX);
    for (int i = 0; i < PTHREAD_KEYS_MAX; i++)
        assert(pthread_setspecific(keys[i], &value) == 0);

    // Whichever number the last key has, it can be given back and taken again.
    for (int i = 0; i < PTHREAD_KEYS_MAX; i++) {
        assert(pthread_key_delete(keys[i]) == 0);
        assert(pthread_key_delete(keys[i]) == EINVAL);
        assert(pthread_setspecific(keys[i], &value) == EINVAL);
        assert(tss_create(&last, comes_back) == thrd_success);
        assert(last == keys[i] && tss_get(last) == NULL);
        if (i % 85 == 0) {
            run(stay, &n_stubborn);
            assert(n_stubborn == 2 * PTHREAD_DESTRUCTOR_ITERATIONS);
            n_stubborn = 0;
        }
        tss_delete(last);
        assert(pthread_key_create(&keys[i], destroy) == 0 && pthread_getspecific(keys[i]) == NULL);
    }
    return 0;
}
