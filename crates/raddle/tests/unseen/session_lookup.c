/*
 * Component: table of reference-counted network sessions, in the style of a
 * kernel object table. Receivers look a session up by id, account a packet and
 * drop the reference; a control thread closes sessions.
 *
 * Bug (use after free, lookup/get race as in many kernel refcount fixes):
 * session_find() reads the table slot under the table lock but takes its
 * reference only after releasing the lock. If the control thread removes the
 * session and drops the last reference in between, the receiver increments the
 * counter of, and uses, a freed object.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define SESSIONS 4
#define RECEIVERS 2
#define PACKETS 6
#define LIVE 0x5e551011u
#define POISON 0x6b6b6b6bu

struct session {
    atomic_uint magic;
    atomic_int ref;
    int id;
    atomic_long rx_bytes;
};

static struct session pool[SESSIONS];
static struct session *table[SESSIONS];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int delivered;
static atomic_int dropped;
static atomic_int released;

static void session_open(int id)
{
    struct session *s = &pool[id];
    s->id = id;
    atomic_store(&s->ref, 1);
    atomic_store(&s->magic, LIVE);
    pthread_mutex_lock(&table_lock);
    table[id] = s;
    pthread_mutex_unlock(&table_lock);
}

static void session_free(struct session *s)
{
    atomic_store(&s->magic, POISON); /* guilty */
    atomic_fetch_add(&released, 1);
}

static void session_put(struct session *s)
{
    int old = atomic_fetch_sub(&s->ref, 1); /* guilty */
    if (old == 1)
        session_free(s);
}

static struct session *session_find(int id)
{
    struct session *s;

    pthread_mutex_lock(&table_lock);
    s = table[id]; /* guilty */
    pthread_mutex_unlock(&table_lock);
    if (s == NULL)
        return NULL;
    atomic_fetch_add(&s->ref, 1); /* guilty */
    return s;
}

static void session_close(int id)
{
    struct session *s;

    pthread_mutex_lock(&table_lock);
    s = table[id];
    table[id] = NULL; /* guilty */
    pthread_mutex_unlock(&table_lock);
    if (s != NULL)
        session_put(s);
}

static void receive(int id, int bytes)
{
    struct session *s = session_find(id);

    if (s == NULL) {
        atomic_fetch_add(&dropped, 1);
        return;
    }
    unsigned magic = atomic_load(&s->magic);
    assert(magic == LIVE);
    atomic_fetch_add(&s->rx_bytes, bytes);
    atomic_fetch_add(&delivered, 1);
    session_put(s);
}

static void *receiver_main(void *arg)
{
    int self = (int)(size_t)arg;
    for (int i = 0; i < PACKETS; i++)
        receive((self * 2 + i) % SESSIONS, 64 + 8 * i);
    return NULL;
}

static void *control_main(void *arg)
{
    (void)arg;
    for (int id = SESSIONS - 1; id >= 0; id--)
        session_close(id);
    return NULL;
}

int main(void)
{
    pthread_t rx[RECEIVERS];
    pthread_t control;

    for (int id = 0; id < SESSIONS; id++)
        session_open(id);
    for (size_t i = 0; i < RECEIVERS; i++)
        pthread_create(&rx[i], NULL, receiver_main, (void *)i);
    pthread_create(&control, NULL, control_main, NULL);
    for (int i = 0; i < RECEIVERS; i++)
        pthread_join(rx[i], NULL);
    pthread_join(control, NULL);

    assert(atomic_load(&released) == SESSIONS);
    assert(atomic_load(&delivered) + atomic_load(&dropped) == RECEIVERS * PACKETS);
    printf("delivered %d dropped %d\n", atomic_load(&delivered), atomic_load(&dropped));
    return 0;
}
