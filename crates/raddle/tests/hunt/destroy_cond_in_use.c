// What is wrong: the one who fulfils a promise unlocks it and then signals. The waiter may see
// that it is done without being woken, and destroys and frees the promise before the signal
// is sent: it goes to a condition variable that is gone. Without a check nobody notices.
// Hunt: fails
// Kind: order, failure
// Guilty: 3 lines
// Shows: use-after-free, misuse

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct promise {
    pthread_mutex_t lock;
    pthread_cond_t fulfilled;
    int done;
    int value;
};

static struct promise *promise_new(void)
{
    struct promise *promise = calloc(1, sizeof *promise);
    pthread_mutex_init(&promise->lock, NULL);
    pthread_cond_init(&promise->fulfilled, NULL);
    return promise;
}

static void fulfil(struct promise *promise, int value)
{
    pthread_mutex_lock(&promise->lock);
    promise->value = value;
    promise->done = 1;
    pthread_mutex_unlock(&promise->lock);
    pthread_cond_signal(&promise->fulfilled); /* guilty */
}

static int await(struct promise *promise)
{
    pthread_mutex_lock(&promise->lock);
    while (!promise->done)
        pthread_cond_wait(&promise->fulfilled, &promise->lock);
    int value = promise->value;
    pthread_mutex_unlock(&promise->lock);

    pthread_cond_destroy(&promise->fulfilled); /* guilty */
    pthread_mutex_destroy(&promise->lock);
    free(promise); /* guilty */
    return value;
}

static void *compute(void *argument)
{
    fulfil(argument, 6 * 7);
    return NULL;
}

int main(void)
{
    for (int i = 0; i < 2; i++) {
        struct promise *promise = promise_new();
        pthread_t thread;
        pthread_create(&thread, NULL, compute, promise);
        assert(await(promise) == 42);
        pthread_join(thread, NULL);
    }
    return 0;
}
