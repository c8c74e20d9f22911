// About: sem_init, sem_wait, sem_post, sem_trywait, sem_timedwait, sem_clockwait, sem_getvalue.
// Covers: sem_clockwait, sem_getvalue, sem_init, sem_post, sem_timedwait, sem_trywait, sem_wait
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

static sem_t slots;
static atomic_int n_inside;

static void *enter(void *argument)
{
    for (int i = 0; i < 10; i++) {
        assert(sem_wait(&slots) == 0);
        assert(++n_inside <= 2);
        n_inside--;
        assert(sem_post(&slots) == 0);
    }
    return argument;
}

static struct timespec in_a_second(clockid_t clock)
{
    struct timespec time;
    assert(clock_gettime(clock, &time) == 0);
    time.tv_sec++;
    return time;
}

int main(void)
{
    int value;
    pthread_t threads[4];
    assert(sem_init(&slots, 0, 2) == 0);
    for (int i = 0; i < 4; i++)
        assert(pthread_create(&threads[i], NULL, enter, NULL) == 0);
    for (int i = 0; i < 4; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(sem_getvalue(&slots, &value) == 0 && value == 2);

    assert(sem_trywait(&slots) == 0 && sem_trywait(&slots) == 0);
    assert(sem_trywait(&slots) == -1 && errno == EAGAIN);
    struct timespec deadline = in_a_second(CLOCK_REALTIME), now;
    assert(sem_timedwait(&slots, &deadline) == -1 && errno == ETIMEDOUT);
    clock_gettime(CLOCK_REALTIME, &now);
    assert(now.tv_sec >= deadline.tv_sec);
    deadline = in_a_second(CLOCK_MONOTONIC);
    assert(sem_clockwait(&slots, CLOCK_MONOTONIC, &deadline) == -1 && errno == ETIMEDOUT);
    deadline.tv_nsec = 1000000000;
    assert(sem_timedwait(&slots, &deadline) == -1 && errno == EINVAL);
    assert(sem_post(&slots) == 0);
    deadline = in_a_second(CLOCK_REALTIME);
    assert(sem_timedwait(&slots, &deadline) == 0);
    assert(sem_destroy(&slots) == 0);
    assert(sem_init(&slots, 0, ~0u) == -1 && errno == EINVAL);
    return 0;
}
