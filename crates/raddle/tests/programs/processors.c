// About: pthread_getaffinity_np, sched_getaffinity, sysconf(_SC_NPROCESSORS_ONLN), get_nprocs, sched_getcpu:
// a program that sizes its pool by processors sees them all, wherever it runs.
// Covers: pthread_getaffinity_np, pthread_setaffinity_np, sched_getaffinity
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <unistd.h>

static atomic_int n_ran;
static int n_expected;

static void *work(void *argument)
{
    cpu_set_t set;
    assert(pthread_getaffinity_np(pthread_self(), sizeof set, &set) == 0);
    assert(CPU_COUNT(&set) == n_expected);
    int cpu = sched_getcpu();
    assert(cpu >= 0 && cpu < sysconf(_SC_NPROCESSORS_CONF));
    n_ran++;
    return argument;
}

int main(void)
{
    cpu_set_t set;
    assert(sched_getaffinity(0, sizeof set, &set) == 0);
    n_expected = CPU_COUNT(&set);
    long n_online = sysconf(_SC_NPROCESSORS_ONLN);
    assert(n_expected >= 1 && n_online >= 1);
    assert(n_expected <= sysconf(_SC_NPROCESSORS_CONF));
    assert(get_nprocs() == n_online && get_nprocs_conf() >= n_online);
    if (n_online > 64)
        n_online = 64;
    pthread_t threads[64];
    for (int i = 0; i < n_online; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < n_online; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_ran == n_online);

    // Pinned to one, it sees one, and its children do.
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set)) {
            CPU_ZERO(&set);
            CPU_SET(cpu, &set);
        }
    assert(pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0);
    n_expected = 1;
    assert(pthread_create(&threads[0], NULL, work, NULL) == 0);
    assert(pthread_join(threads[0], NULL) == 0);
    return 0;
}
