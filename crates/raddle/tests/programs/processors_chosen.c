// About: sched_setaffinity and pthread_setaffinity_np with sets that no processor is in; pthread_getattr_np,
// which shows the processors of a thread.
// Covers: pthread_getattr_np, pthread_setaffinity_np, sched_getaffinity, sched_setaffinity
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

static void *look(void *expected)
{
    pthread_attr_t attributes;
    cpu_set_t set;
    assert(pthread_getattr_np(pthread_self(), &attributes) == 0);
    assert(pthread_attr_getaffinity_np(&attributes, sizeof set, &set) == 0);
    assert(CPU_EQUAL(&set, (cpu_set_t *)expected));
    assert(pthread_attr_destroy(&attributes) == 0);
    return NULL;
}

static void look_everywhere(cpu_set_t *expected)
{
    pthread_t thread;
    cpu_set_t set;
    assert(sched_getaffinity(0, sizeof set, &set) == 0 && CPU_EQUAL(&set, expected));
    assert(sched_getaffinity(getpid(), sizeof set, &set) == 0 && CPU_EQUAL(&set, expected));
    look(expected);
    assert(pthread_create(&thread, NULL, look, expected) == 0);
    assert(pthread_join(thread, NULL) == 0);
}

int main(void)
{
    cpu_set_t all, none, one;
    assert(sched_getaffinity(0, sizeof all, &all) == 0);
    look_everywhere(&all);

    CPU_ZERO(&none);
    assert(sched_setaffinity(0, sizeof none, &none) == -1 && errno == EINVAL);
    CPU_SET(CPU_SETSIZE - 1, &none);
    assert(sched_setaffinity(0, sizeof none, &none) == -1 && errno == EINVAL);
    assert(pthread_setaffinity_np(pthread_self(), sizeof none, &none) == EINVAL);
    assert(sched_setaffinity(0x3fffffff, sizeof all, &all) == -1 && errno == ESRCH);
    assert(sched_getaffinity(0, 1, &one) == -1 && errno == EINVAL);
    look_everywhere(&all);

    // A processor that is not there is left out.
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    CPU_OR(&none, &none, &one);
    assert(sched_setaffinity(0, sizeof none, &none) == 0);
    look_everywhere(&one);
    assert(sched_setaffinity(0, sizeof all, &all) == 0);
    look_everywhere(&all);
    return 0;
}
