// Nothing is wrong: a ticket is polled with a bounded spin, then with yields, then with sleeps that
// double, as long as it takes.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { WORKERS = 3, ROUNDS = 4, SPINS = 50, YIELDS = 10, SLEEP_NS_MAX = 1000 * 1000 };

static atomic_uint next_ticket;
static atomic_uint now_serving;
static int served[WORKERS * ROUNDS];
static int n_served;

struct backoff {
    int n;
    long sleep_ns;
};

static void back_off(struct backoff *backoff)
{
    backoff->n++;
    if (backoff->n < SPINS) {
        __builtin_ia32_pause();
    } else if (backoff->n < SPINS + YIELDS) {
        sched_yield();
    } else {
        struct timespec time = { .tv_nsec = backoff->sleep_ns };
        nanosleep(&time, NULL);
        if (backoff->sleep_ns < SLEEP_NS_MAX)
            backoff->sleep_ns *= 2;
    }
}

static void *serve(void *argument)
{
    int id = *(int *)argument;

    for (int i = 0; i < ROUNDS; i++) {
        struct backoff backoff = { .sleep_ns = 1000 };
        unsigned ticket = atomic_fetch_add(&next_ticket, 1);
        while (atomic_load_explicit(&now_serving, memory_order_acquire) != ticket)
            back_off(&backoff);
        served[n_served++] = id;
        atomic_store_explicit(&now_serving, ticket + 1, memory_order_release);
    }
    return NULL;
}

int main(void)
{
    pthread_t workers[WORKERS];
    int ids[WORKERS];
    int n_of[WORKERS] = { 0 };

    for (int i = 0; i < WORKERS; i++) {
        ids[i] = i;
        pthread_create(&workers[i], NULL, serve, &ids[i]);
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    assert(n_served == WORKERS * ROUNDS);
    for (int i = 0; i < n_served; i++)
        n_of[served[i]]++;
    for (int i = 0; i < WORKERS; i++)
        assert(n_of[i] == ROUNDS);
    return 0;
}
