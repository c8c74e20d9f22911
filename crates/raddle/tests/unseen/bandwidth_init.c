/*
 * Component: session start of a file-sharing client. The event thread executes
 * commands from a queue (add torrent, pulse, quit) and has new torrents checked
 * by a verifier thread; peer threads use upload credit; main creates the session.
 *
 * Bug (order violation, cf. Transmission ticket 1818): session_start() queues
 * the first bandwidth pulse for the event thread before it has initialised the
 * session's bandwidth object. If the event thread gets to the pulse command
 * before main stores the object, it works on an uninitialised bandwidth.
 */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

#define BANDWIDTH_MAGIC 43143
#define QCAP 16
#define PEERS 2
#define PULSES 3
#define TORRENTS 2

enum cmd { CMD_ADD_TORRENT, CMD_PULSE, CMD_QUIT };

struct bandwidth {
    int magic;
    atomic_int limit;
    atomic_int credit;
};

struct session {
    struct bandwidth bw;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    enum cmd queue[QCAP];
    int head;
    int tail;
    int torrents;
    int pulses;
    atomic_int uploaded;
};

static struct {
    sem_t request;
    sem_t done;
    unsigned digest[TORRENTS];
} verify;

static struct session session = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };

static void bandwidth_init(struct bandwidth *b, int limit)
{
    atomic_store(&b->credit, 0);
    atomic_store(&b->limit, limit);
    b->magic = BANDWIDTH_MAGIC; /* guilty */
}

static void bandwidth_allocate(struct bandwidth *b)
{
    int magic = b->magic; /* guilty */
    assert(magic == BANDWIDTH_MAGIC);
    atomic_fetch_add(&b->credit, atomic_load(&b->limit));
}

static int bandwidth_use(struct bandwidth *b, int want)
{
    int have = atomic_load(&b->credit);
    do {
        if (have < want)
            return 0;
    } while (!atomic_compare_exchange_weak(&b->credit, &have, have - want));
    return want;
}

static void run_in_event_thread(struct session *s, enum cmd c)
{
    pthread_mutex_lock(&s->lock);
    s->queue[s->tail] = c;
    s->tail++;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

static enum cmd next_command(struct session *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->head == s->tail)
        pthread_cond_wait(&s->wake, &s->lock);
    enum cmd c = s->queue[s->head];
    s->head++;
    pthread_mutex_unlock(&s->lock);
    return c;
}

static void *verifier_main(void *arg)
{
    (void)arg;
    for (int t = 0; t < TORRENTS; t++) {
        unsigned h = (unsigned)t;
        sem_wait(&verify.request);
        for (int i = 0; i < 2000; i++)
            h = h * 2654435761u + 97u;
        verify.digest[t] = h;
        sem_post(&verify.done);
    }
    return NULL;
}

static void verify_torrent(void)
{
    sem_post(&verify.request);
    sem_wait(&verify.done);
}

static void *event_main(void *arg)
{
    struct session *s = arg;
    for (;;) {
        enum cmd c = next_command(s);
        if (c == CMD_QUIT)
            break;
        if (c == CMD_ADD_TORRENT) {
            verify_torrent();
            s->torrents++;
        } else {
            bandwidth_allocate(&s->bw);
            s->pulses++;
        }
    }
    return NULL;
}

static void *peer_main(void *arg)
{
    struct session *s = arg;
    for (int i = 0; i < 4; i++) {
        int n = bandwidth_use(&s->bw, 16);
        atomic_fetch_add(&s->uploaded, n);
    }
    return NULL;
}

static void session_start(struct session *s, pthread_t *event_tid)
{
    pthread_create(event_tid, NULL, event_main, s);
    for (int i = 0; i < TORRENTS; i++)
        run_in_event_thread(s, CMD_ADD_TORRENT);
    run_in_event_thread(s, CMD_PULSE);
    bandwidth_init(&s->bw, 64);
}

int main(void)
{
    pthread_t event_tid;
    pthread_t verifier;
    pthread_t peer[PEERS];

    sem_init(&verify.request, 0, 0);
    sem_init(&verify.done, 0, 0);
    pthread_create(&verifier, NULL, verifier_main, NULL);
    session_start(&session, &event_tid);
    for (int i = 0; i < PEERS; i++)
        pthread_create(&peer[i], NULL, peer_main, &session);
    for (int i = 1; i < PULSES; i++)
        run_in_event_thread(&session, CMD_PULSE);
    run_in_event_thread(&session, CMD_QUIT);
    pthread_join(event_tid, NULL);
    pthread_join(verifier, NULL);
    for (int i = 0; i < PEERS; i++)
        pthread_join(peer[i], NULL);

    int uploaded = atomic_load(&session.uploaded);
    int left = atomic_load(&session.bw.credit);
    assert(session.torrents == TORRENTS && session.pulses == PULSES);
    assert(uploaded + left == PULSES * 64);
    printf("%d torrents, %d pulses, digest %x\n", session.torrents, session.pulses, verify.digest[0] ^ verify.digest[1]);
    return 0;
}
