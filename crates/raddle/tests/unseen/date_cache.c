/*
 * Component: cached "Date:" header of an HTTP server. The accept loop advances
 * the logical clock and refreshes the cache; the response threads take the
 * current second (for Expires) and the formatted date string from the cache.
 *
 * Bug (multi-variable atomicity violation, cf. Cherokee bogotime): the cached
 * second and the cached string belong together, but the second is stored before
 * the lock is taken to replace the string, and readers fetch the second without
 * and the string with the lock. A response built between the two updates (or an
 * update between the two reads) has Date and Expires that do not match.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EPOCH 1000
#define TICKS 4
#define RESPONDERS 2
#define RESPONSES 5
#define MAX_AGE 60

struct date_cache {
    atomic_int now;
    pthread_rwlock_t lock;
    char text[32];
    unsigned refreshed;
};

struct response {
    char date[32];
    int expires;
    int length;
};

static struct date_cache cache = { .lock = PTHREAD_RWLOCK_INITIALIZER };
static atomic_int served;
static atomic_int mismatches;
static pthread_mutex_t traffic_lock = PTHREAD_MUTEX_INITIALIZER;
static long traffic_bytes;
static int traffic_peak;

static void cache_refresh(struct date_cache *c, int now)
{
    char tmp[32];

    snprintf(tmp, sizeof tmp, "T%06d GMT", now);
    atomic_store(&c->now, now); /* guilty */
    pthread_rwlock_wrlock(&c->lock);
    memcpy(c->text, tmp, sizeof c->text); /* guilty */
    c->refreshed++;
    pthread_rwlock_unlock(&c->lock);
}

static int cache_now(struct date_cache *c)
{
    return atomic_load(&c->now); /* guilty */
}

static void cache_text(struct date_cache *c, char *out)
{
    pthread_rwlock_rdlock(&c->lock);
    memcpy(out, c->text, sizeof c->text); /* guilty */
    pthread_rwlock_unlock(&c->lock);
}

static void account(int bytes)
{
    pthread_mutex_lock(&traffic_lock);
    traffic_bytes += bytes;
    if (bytes > traffic_peak)
        traffic_peak = bytes;
    pthread_mutex_unlock(&traffic_lock);
}

static void build_response(struct response *r, int request)
{
    r->length = 200 + 13 * request;
    r->expires = cache_now(&cache) + MAX_AGE;
    cache_text(&cache, r->date);
}

/* what a browser would do with the two headers */
static int client_check(const struct response *r)
{
    int date = atoi(r->date + 1);
    return r->expires - date == MAX_AGE;
}

static void *responder_main(void *arg)
{
    int id = (int)(size_t)arg;

    for (int i = 0; i < RESPONSES; i++) {
        struct response r;
        build_response(&r, id * RESPONSES + i);
        account(r.length);
        if (!client_check(&r))
            atomic_fetch_add(&mismatches, 1);
        atomic_fetch_add(&served, 1);
    }
    return NULL;
}

static void *accept_main(void *arg)
{
    (void)arg;
    for (int t = 1; t <= TICKS; t++)
        cache_refresh(&cache, EPOCH + t);
    return NULL;
}

int main(void)
{
    pthread_t acceptor;
    pthread_t resp[RESPONDERS];

    cache_refresh(&cache, EPOCH);
    pthread_create(&acceptor, NULL, accept_main, NULL);
    for (size_t i = 0; i < RESPONDERS; i++)
        pthread_create(&resp[i], NULL, responder_main, (void *)i);
    pthread_join(acceptor, NULL);
    for (int i = 0; i < RESPONDERS; i++)
        pthread_join(resp[i], NULL);

    printf("%d responses, %ld bytes (peak %d), %u refreshes, %d mismatches\n", atomic_load(&served),
           traffic_bytes, traffic_peak, cache.refreshed, atomic_load(&mismatches));
    return atomic_load(&mismatches) == 0 ? 0 : 1;
}
