/*
 * Component: routing table with lock-free readers. Forwarders announce the
 * table they use in a per-thread hazard pointer; the updater installs new
 * versions and frees old ones that no hazard pointer mentions.
 *
 * Bug (use after free, unvalidated hazard pointer / RCU-like reclamation): a
 * forwarder loads `current` and announces the pointer, but does not check
 * afterwards that it is still current. If the updater replaces the table,
 * scans the hazard pointers and frees the table between the load and the
 * announcement, the forwarder uses a freed table.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define FORWARDERS 2
#define PACKETS 6
#define UPDATES 4
#define ROUTES 4
#define LIVE 1
#define DEAD 2

struct route_table {
    atomic_int state;
    int version;
    int gateway[ROUTES];
};

static struct route_table slab[UPDATES + 1];
static _Atomic(struct route_table *) current;
static _Atomic(struct route_table *) hazard[FORWARDERS];
static atomic_int forwarded;
static atomic_int freed;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int log_highest;

/* used by the updater only */
static struct route_table *retired[UPDATES + 1];
static int nretired;

static struct route_table *table_build(int version)
{
    struct route_table *t = &slab[version];
    t->version = version;
    for (int i = 0; i < ROUTES; i++)
        t->gateway[i] = version * 10 + i;
    atomic_store(&t->state, LIVE);
    return t;
}

static void table_free(struct route_table *t)
{
    int old = atomic_exchange(&t->state, DEAD); /* guilty */
    assert(old == LIVE);
    atomic_fetch_add(&freed, 1);
}

static void reclaim(void)
{
    int kept = 0;
    for (int i = 0; i < nretired; i++) {
        int busy = 0;
        for (int f = 0; f < FORWARDERS; f++) {
            struct route_table *h = atomic_load(&hazard[f]); /* guilty */
            if (h == retired[i])
                busy = 1;
        }
        if (busy)
            retired[kept++] = retired[i];
        else
            table_free(retired[i]);
    }
    nretired = kept;
}

static void install(struct route_table *t)
{
    struct route_table *old = atomic_exchange(&current, t); /* guilty */
    retired[nretired++] = old;
    reclaim();
}

static void forward(int self, int dst)
{
    struct route_table *t = atomic_load(&current); /* guilty */
    atomic_store(&hazard[self], t); /* guilty */
    int gw = t->gateway[dst % ROUTES];
    int version = t->version;
    int state = atomic_load(&t->state);
    assert(state == LIVE);
    atomic_store(&hazard[self], NULL);
    assert(gw == version * 10 + dst % ROUTES);

    pthread_mutex_lock(&log_lock);
    if (version > log_highest)
        log_highest = version;
    pthread_mutex_unlock(&log_lock);
    atomic_fetch_add(&forwarded, 1);
}

static void *forwarder_main(void *arg)
{
    int self = (int)(size_t)arg;
    for (int i = 0; i < PACKETS; i++)
        forward(self, self + i);
    return NULL;
}

static void *updater_main(void *arg)
{
    (void)arg;
    for (int v = 1; v <= UPDATES; v++)
        install(table_build(v));
    return NULL;
}

int main(void)
{
    pthread_t fwd[FORWARDERS];
    pthread_t updater;

    atomic_store(&current, table_build(0));
    for (size_t i = 0; i < FORWARDERS; i++)
        pthread_create(&fwd[i], NULL, forwarder_main, (void *)i);
    pthread_create(&updater, NULL, updater_main, NULL);
    for (int i = 0; i < FORWARDERS; i++)
        pthread_join(fwd[i], NULL);
    pthread_join(updater, NULL);

    reclaim();
    assert(atomic_load(&freed) == UPDATES);
    assert(atomic_load(&forwarded) == FORWARDERS * PACKETS);
    assert(log_highest <= UPDATES);
    printf("%d packets, %d tables freed\n", atomic_load(&forwarded), atomic_load(&freed));
    return 0;
}
