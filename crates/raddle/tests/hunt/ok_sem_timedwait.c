// Nothing is wrong: producers and consumers with semaphores. A consumer that has waited for a second
// looks whether the producers are done, and ends then.
// Hunt: clean

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

enum { SLOTS = 2, ITEMS = 4, PRODUCERS = 2, CONSUMERS = 2 };

static sem_t n_free, n_full;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int slots[SLOTS], head, tail;
static int sum;
static atomic_int n_working = PRODUCERS;

static int wait_a_second(sem_t *semaphore)
{
    struct timespec until;
    int status;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    while ((status = sem_timedwait(semaphore, &until)) != 0 && errno == EINTR)
        ;
    return status;
}

static void *produce(void *argument)
{
    for (int i = 1; i <= ITEMS; i++) {
        while (sem_wait(&n_free) != 0)
            assert(errno == EINTR);
        pthread_mutex_lock(&lock);
        slots[tail++ % SLOTS] = i;
        pthread_mutex_unlock(&lock);
        sem_post(&n_full);
    }
    atomic_fetch_sub(&n_working, 1);
    return argument;
}

static void *consume(void *argument)
{
    for (;;) {
        int is_last = atomic_load(&n_working) == 0;
        if (wait_a_second(&n_full) != 0) {
            assert(errno == ETIMEDOUT);
            if (is_last)
                return argument;
            continue;
        }
        pthread_mutex_lock(&lock);
        sum += slots[head++ % SLOTS];
        pthread_mutex_unlock(&lock);
        sem_post(&n_free);
    }
}

int main(void)
{
    pthread_t producers[PRODUCERS], consumers[CONSUMERS];

    sem_init(&n_free, 0, SLOTS);
    sem_init(&n_full, 0, 0);
    for (int i = 0; i < CONSUMERS; i++)
        pthread_create(&consumers[i], NULL, consume, NULL);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_create(&producers[i], NULL, produce, NULL);
    for (int i = 0; i < PRODUCERS; i++)
        pthread_join(producers[i], NULL);
    for (int i = 0; i < CONSUMERS; i++)
        pthread_join(consumers[i], NULL);
    assert(sum == PRODUCERS * (1 + 2 + 3 + 4));
    assert(sem_destroy(&n_free) == 0 && sem_destroy(&n_full) == 0);
    return 0;
}
