// Nothing is wrong: the workers count cache hits without a lock. The count may come out too
// low; it is printed for curiosity, and nothing depends on it. What matters is locked.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define N_WORKERS 3
#define N_LOOKUPS 8
#define N_SLOTS 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int slots[N_SLOTS];
static int n_answers;
static unsigned long n_hits, n_misses; /* about right is good enough */

static int look_up(int key)
{
    int answer;

    pthread_mutex_lock(&lock);
    answer = slots[key % N_SLOTS];
    if (answer == 0)
        answer = slots[key % N_SLOTS] = 100 + key % N_SLOTS;
    else
        key = -1;
    n_answers++;
    pthread_mutex_unlock(&lock);

    if (key == -1)
        n_hits++;
    else
        n_misses++;
    return answer;
}

static void *work(void *argument)
{
    int first = *(const int *)argument;
    for (int i = 0; i < N_LOOKUPS; i++)
        assert(look_up(first + i) == 100 + (first + i) % N_SLOTS);
    return NULL;
}

int main(void)
{
    static const int firsts[N_WORKERS] = {0, 1, 2};
    pthread_t workers[N_WORKERS];

    for (int i = 0; i < N_WORKERS; i++)
        pthread_create(&workers[i], NULL, work, (void *)&firsts[i]);
    for (int i = 0; i < N_WORKERS; i++)
        pthread_join(workers[i], NULL);
    fprintf(stderr, "%lu hits, %lu misses\n", n_hits, n_misses);
    assert(n_answers == N_WORKERS * N_LOOKUPS);
    return 0;
}
