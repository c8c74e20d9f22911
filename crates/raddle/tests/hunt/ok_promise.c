// Nothing is wrong: a promise is fulfilled and signalled under its lock, and freed by the waiter
// only after the thread that fulfils it has been joined.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct promise {
    pthread_mutex_t lock;
    pthread_cond_t fulfilled;
    pthread_t thread;
    int done;
    int argument;
    int value;
};

static void *compute(void *argument)
{
    struct promise *promise = argument;
    int value = promise->argument * promise->argument;

    pthread_mutex_lock(&promise->lock);
    promise->value = value;
    promise->done = 1;
    pthread_cond_signal(&promise->fulfilled);
    pthread_mutex_unlock(&promise->lock);
    return NULL;
}

static struct promise *promise_new(int argument)
{
    struct promise *promise = calloc(1, sizeof *promise);
    pthread_mutex_init(&promise->lock, NULL);
    pthread_cond_init(&promise->fulfilled, NULL);
    promise->argument = argument;
    pthread_create(&promise->thread, NULL, compute, promise);
    return promise;
}

static int await(struct promise *promise)
{
    pthread_mutex_lock(&promise->lock);
    while (!promise->done)
        pthread_cond_wait(&promise->fulfilled, &promise->lock);
    int value = promise->value;
    pthread_mutex_unlock(&promise->lock);

    pthread_join(promise->thread, NULL);
    pthread_cond_destroy(&promise->fulfilled);
    pthread_mutex_destroy(&promise->lock);
    free(promise);
    return value;
}

int main(void)
{
    struct promise *promises[3];
    int sum = 0;

    for (int i = 0; i < 3; i++)
        promises[i] = promise_new(i + 1);
    for (int i = 0; i < 3; i++)
        sum += await(promises[i]);
    assert(sum == 1 + 4 + 9);
    return 0;
}
