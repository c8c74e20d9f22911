/*
 * Component: lock-free free list of I/O buffers (Treiber stack of indices).
 * Worker threads allocate a header and a payload buffer per packet, fill them
 * and give them back.
 *
 * Bug (ABA problem): buf_alloc() reads the head A and its successor B and
 * swings the head from A to B with a compare-and-swap on the bare index. If
 * another worker meanwhile allocates A and B and frees A again, the head is A
 * once more, the CAS succeeds and makes B the head although B is in use; B is
 * then handed out a second time.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define BUFS 8
#define WORKERS 3
#define PACKETS 6
#define NIL (-1)

struct buffer {
    atomic_int next;
    atomic_int owner;
    int len;
    int payload[4];
};

static struct buffer bufs[BUFS];
static atomic_int head = NIL;
static atomic_int sent;
static atomic_long bytes;
static pthread_mutex_t stat_lock = PTHREAD_MUTEX_INITIALIZER;
static int longest;

static int buf_alloc(void)
{
    int h;
    int n;

    do {
        h = atomic_load(&head); /* guilty */
        if (h == NIL)
            return NIL;
        n = atomic_load(&bufs[h].next); /* guilty */
    } while (!atomic_compare_exchange_strong(&head, &h, n)); /* guilty */
    return h;
}

static void buf_free(int b)
{
    int h;

    do {
        h = atomic_load(&head);
        atomic_store(&bufs[b].next, h); /* guilty */
    } while (!atomic_compare_exchange_strong(&head, &h, b)); /* guilty */
}

static void claim(int b, int worker)
{
    int old = atomic_exchange(&bufs[b].owner, worker + 1);
    assert(old == 0 && "buffer handed out twice");
}

static void unclaim(int b)
{
    atomic_store(&bufs[b].owner, 0);
}

static void note_length(int len)
{
    pthread_mutex_lock(&stat_lock);
    if (len > longest)
        longest = len;
    pthread_mutex_unlock(&stat_lock);
}

static void send_packet(int worker, int number)
{
    int hdr = buf_alloc();
    assert(hdr != NIL);
    claim(hdr, worker);
    int data = buf_alloc();
    assert(data != NIL);
    claim(data, worker);

    bufs[hdr].len = 8;
    bufs[data].len = 16 + number;
    for (int i = 0; i < 4; i++)
        bufs[data].payload[i] = worker * 100 + number;
    int len = bufs[hdr].len + bufs[data].len;

    unclaim(hdr);
    buf_free(hdr);
    note_length(len);
    atomic_fetch_add(&sent, 1);
    atomic_fetch_add(&bytes, len);
    assert(bufs[data].payload[3] == worker * 100 + number);
    unclaim(data);
    buf_free(data);
}

static void *worker_main(void *arg)
{
    int self = (int)(size_t)arg;
    for (int i = 0; i < PACKETS; i++)
        send_packet(self, i);
    return NULL;
}

int main(void)
{
    pthread_t tid[WORKERS];
    int seen = 0;

    for (int b = BUFS - 1; b >= 0; b--)
        buf_free(b);
    for (size_t i = 0; i < WORKERS; i++)
        pthread_create(&tid[i], NULL, worker_main, (void *)i);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(tid[i], NULL);

    for (int b = buf_alloc(); b != NIL; b = buf_alloc()) {
        claim(b, WORKERS);
        seen++;
    }
    printf("%d packets, %ld bytes, longest %d\n", atomic_load(&sent), atomic_load(&bytes), longest);
    assert(seen == BUFS);
    return 0;
}
