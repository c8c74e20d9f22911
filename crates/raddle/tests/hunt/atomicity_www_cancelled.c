// What is wrong: a download writes its state when it begins and when it is done, without
// looking at what is there. A cancellation that comes in between is overwritten (W-W-W), and
// a file is shown as done that was removed.
// Hunt: fails
// Kind: atomicity
// Guilty: 4 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

enum state { WAITING, RUNNING, DONE, CANCELLED };

struct download {
    _Atomic int state;
    pthread_mutex_t lock;
    int n_bytes;
    int n_bytes_wanted;
    int removed;
};

static void *fetch(void *argument)
{
    struct download *download = argument;

    atomic_store(&download->state, RUNNING); /* guilty */
    pthread_mutex_lock(&download->lock);
    while (download->n_bytes < download->n_bytes_wanted)
        download->n_bytes += 100;
    pthread_mutex_unlock(&download->lock);
    atomic_store(&download->state, DONE); /* guilty */
    return NULL;
}

static void *cancel(void *argument)
{
    struct download *download = argument;

    /* What is done stays, and what was never begun needs nothing. */
    if (atomic_load(&download->state) != RUNNING) /* guilty */
        return NULL;
    atomic_store(&download->state, CANCELLED); /* guilty */
    pthread_mutex_lock(&download->lock);
    download->removed = 1;
    pthread_mutex_unlock(&download->lock);
    return NULL;
}

int main(void)
{
    struct download download = {WAITING, PTHREAD_MUTEX_INITIALIZER, 0, 300, 0};
    pthread_t fetcher, canceller;

    pthread_create(&fetcher, NULL, fetch, &download);
    pthread_create(&canceller, NULL, cancel, &download);
    pthread_join(fetcher, NULL);
    pthread_join(canceller, NULL);

    assert(atomic_load(&download.state) != DONE || !download.removed);
    return 0;
}
