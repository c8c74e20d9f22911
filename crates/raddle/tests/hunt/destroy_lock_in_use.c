// What is wrong: the owner of a task polls an atomic flag that the worker sets while it still
// holds the task's lock, and then destroys the lock and the task. The worker unlocks a lock
// that is gone.
// Hunt: fails
// Kind: order, race, failure
// Guilty: 3 lines
// Shows: misuse, use-after-free, assert

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct task {
    pthread_mutex_t lock;
    _Atomic int done;
    int result;
};

struct pair {
    struct task *task;
    int got;
};

static void *work(void *argument)
{
    struct task *task = argument;

    pthread_mutex_lock(&task->lock);
    for (int i = 1; i <= 4; i++)
        task->result += i;
    atomic_store(&task->done, 1);
    pthread_mutex_unlock(&task->lock); /* guilty */
    return NULL;
}

static void *own(void *argument)
{
    struct pair *pair = argument;
    struct task *task = pair->task;

    if (!atomic_load(&task->done)) /* guilty */
        return NULL; /* main will see to it */
    pair->got = task->result;
    int busy = pthread_mutex_destroy(&task->lock); /* guilty */
    assert(busy == 0);
    free(task);
    pair->task = NULL;
    return NULL;
}

int main(void)
{
    struct pair pair = {calloc(1, sizeof(struct task)), 0};
    pthread_t worker, owner;

    pthread_mutex_init(&pair.task->lock, NULL);
    pthread_create(&worker, NULL, work, pair.task);
    pthread_create(&owner, NULL, own, &pair);
    pthread_join(owner, NULL);
    pthread_join(worker, NULL);
    if (pair.task != NULL)
        own(&pair);
    assert(pair.got == 10);
    return 0;
}
