// What is wrong: index and journal are locked in different orders by the writer and the compactor.
// While they wait for each other, a heartbeat goes on: not all threads stand still.
// Hunt: fails
// Kind: deadlock
// Guilty: 4 lines
// Shows: deadlock

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

static pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;
static int n_keys, n_entries;
static atomic_bool is_over;
static atomic_int n_beats;

static void *beat(void *argument)
{
    while (!atomic_load(&is_over)) {
        atomic_fetch_add(&n_beats, 1);
        usleep(1000);
    }
    return argument;
}

static void *insert(void *argument)
{
    pthread_mutex_lock(&index_lock); /* guilty */
    n_keys++;
    pthread_mutex_lock(&journal_lock); /* guilty */
    n_entries++;
    pthread_mutex_unlock(&journal_lock);
    pthread_mutex_unlock(&index_lock);
    return argument;
}

static void *compact(void *argument)
{
    pthread_mutex_lock(&journal_lock); /* guilty */
    n_entries = 0;
    pthread_mutex_lock(&index_lock); /* guilty */
    n_keys = 0;
    pthread_mutex_unlock(&index_lock);
    pthread_mutex_unlock(&journal_lock);
    return argument;
}

int main(void)
{
    pthread_t heart, threads[2];

    pthread_create(&heart, NULL, beat, NULL);
    pthread_create(&threads[0], NULL, insert, NULL);
    pthread_create(&threads[1], NULL, compact, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&is_over, true);
    pthread_join(heart, NULL);
    assert(n_keys == n_entries);
    return 0;
}
