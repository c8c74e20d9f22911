// Nothing is wrong: a worker spins on an atomic flag until the data it announces is there, and
// answers by another flag. The data itself needs no lock.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define N_ROUNDS 3

static int question, answer;
static _Atomic int asked, answered;

static void *ask(void *argument)
{
    for (int round = 1; round <= N_ROUNDS; round++) {
        question = round * 10;
        atomic_store_explicit(&asked, round, memory_order_release);
        while (atomic_load_explicit(&answered, memory_order_acquire) < round)
            sched_yield();
        assert(answer == round * 10 + 1);
    }
    return argument;
}

static void *reply(void *argument)
{
    for (int round = 1; round <= N_ROUNDS; round++) {
        while (atomic_load_explicit(&asked, memory_order_acquire) < round)
            sched_yield();
        answer = question + 1;
        atomic_store_explicit(&answered, round, memory_order_release);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, ask, NULL);
    pthread_create(&threads[1], NULL, reply, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(question == 10 * N_ROUNDS && answer == question + 1);
    return 0;
}
