// What is wrong: figure 1 of the LOCON paper, after Transmission 1.42: the session starts the
// peer manager and sets up its bandwidth afterwards; the manager's timer, which is slow as a
// rule, may go off before that. The assertion stops the program, so that the bandwidth is never
// written in a failing run. More is missing in such a run than what is to blame.
// Localize: II
// Pairs: 1

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct bandwidth {
    int limit;
    int used;
};

struct session {
    pthread_mutex_t lock;
    struct bandwidth *bandwidth;
    int n_peers;
};

static int timer_ticks[4];
static int session_options[4];

static void work(int *counts)
{
    for (int i = 0; i < 4; i++)
        counts[i]++;
}

static void *allocate_bandwidth(void *argument)
{
    struct session *h = argument;

    work(timer_ticks);
    pthread_mutex_lock(&h->lock);
    int n_peers = h->n_peers;
    assert(h->bandwidth); /* head */
    h->bandwidth->used = h->bandwidth->limit / n_peers;
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

int main(void)
{
    struct session *h = calloc(1, sizeof *h);
    pthread_t peer_manager;

    pthread_mutex_init(&h->lock, NULL);
    h->n_peers = 4;
    pthread_create(&peer_manager, NULL, allocate_bandwidth, h);
    work(session_options);
    pthread_mutex_lock(&h->lock);
    struct bandwidth *bandwidth = calloc(1, sizeof *bandwidth);
    bandwidth->limit = 100;
    h->bandwidth = bandwidth; /* tail */
    pthread_mutex_unlock(&h->lock);
    pthread_join(peer_manager, NULL);
    assert(bandwidth->used == 25);
    return 0;
}
