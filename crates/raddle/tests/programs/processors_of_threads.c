// About: threads with processors of their own, by attribute and by request; sched_getcpu and getcpu follow.
// Covers: getcpu, pthread_getaffinity_np, pthread_setaffinity_np, sched_getcpu
// Outcome: exit 0
// Free: no, threads that may run anywhere move.
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

static cpu_set_t all;

static void check_runs_on(const cpu_set_t *expected)
{
    cpu_set_t set;
    assert(pthread_getaffinity_np(pthread_self(), sizeof set, &set) == 0);
    assert(CPU_EQUAL(&set, expected));
    unsigned cpu, node;
    int here = sched_getcpu();
    assert(here >= 0 && CPU_ISSET(here, expected));
    assert(getcpu(&cpu, &node) == 0 && cpu == (unsigned)here);
    sched_yield();
    assert(sched_getcpu() == here);
}

static void *inherit(void *set)
{
    check_runs_on(set);
    return NULL;
}

static void *run_on(void *argument)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((intptr_t)argument, &one);
    check_runs_on(&one);

    // Its own threads start where it may run.
    pthread_t child;
    assert(pthread_create(&child, NULL, inherit, &one) == 0);
    assert(pthread_join(child, NULL) == 0);

    assert(pthread_setaffinity_np(pthread_self(), sizeof all, &all) == 0);
    check_runs_on(&all);
    return NULL;
}

int main(void)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    assert(sched_getaffinity(0, sizeof all, &all) == 0);
    check_runs_on(&all);

    int n = 0;
    for (int cpu = 0; cpu < CPU_SETSIZE && n < THREADS; cpu++) {
        if (!CPU_ISSET(cpu, &all))
            continue;
        cpu_set_t one;
        pthread_attr_t attributes;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        pthread_attr_init(&attributes);
        assert(pthread_attr_setaffinity_np(&attributes, sizeof one, &one) == 0);
        assert(pthread_create(&threads[n++], &attributes, run_on, (void *)(intptr_t)cpu) == 0);
        pthread_attr_destroy(&attributes);
    }
    check_runs_on(&all);
    while (n > 0)
        assert(pthread_join(threads[--n], NULL) == 0);
    return 0;
}
