// About: sched_yield and pthread_yield in loops that wait for another thread, or a sleeping one.
// Covers: sched_yield
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

static atomic_int stage;

static void *awake(void *argument)
{
    while (stage != 1)
        sched_yield();
    stage = 2;
    return argument;
}

static void *asleep(void *argument)
{
    while (stage != 3)
        sched_yield();
    usleep(20000);
    stage = 4;
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    assert(pthread_create(&threads[0], NULL, awake, NULL) == 0);
    assert(pthread_create(&threads[1], NULL, asleep, NULL) == 0);
    stage = 1;
    while (stage != 2)
        sched_yield();
    stage = 3;
    while (stage != 4)
        assert(sched_yield() == 0);
    assert(pthread_join(threads[0], NULL) == 0);
    assert(pthread_join(threads[1], NULL) == 0);
    return 0;
}
