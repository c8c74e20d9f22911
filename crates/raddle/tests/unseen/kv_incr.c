/*
 * Component: the item store of an in-memory key/value server. Connection
 * threads run scripted "get", "set" and "incr" commands on a hash table with
 * one lock per bucket.
 *
 * Bug (atomicity violation, cf. memcached issue 127): cmd_incr() reads the
 * value in one critical section, computes the new value outside and stores it
 * in a second critical section. If another connection increments the same item
 * between the two sections, its increment is overwritten. There is no data
 * race: every access is made with the bucket lock held.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define BUCKETS 4
#define CONNS 3
#define MAXITEMS 8

struct item {
    char key[12];
    long value;
    unsigned cas_id;
    struct item *next;
};

struct bucket {
    pthread_mutex_t lock;
    struct item *head;
};

enum op { OP_GET, OP_SET, OP_INCR };

struct command {
    enum op op;
    const char *key;
    long arg;
};

static struct bucket table[BUCKETS];
static struct item items[MAXITEMS];
static int nitems;
static atomic_long cmd_total;
static atomic_long get_hits;

static struct bucket *bucket_of(const char *key)
{
    unsigned h = 5381;
    while (*key)
        h = h * 33 + (unsigned char)*key++;
    return &table[h % BUCKETS];
}

static struct item *find(struct bucket *b, const char *key)
{
    for (struct item *it = b->head; it; it = it->next)
        if (strcmp(it->key, key) == 0)
            return it;
    return NULL;
}

static void store_new(const char *key, long value)
{
    struct bucket *b = bucket_of(key);
    struct item *it = &items[nitems++];
    strncpy(it->key, key, sizeof it->key - 1);
    it->value = value;
    it->next = b->head;
    b->head = it;
}

static void cmd_get(const char *key)
{
    struct bucket *b = bucket_of(key);
    pthread_mutex_lock(&b->lock);
    if (find(b, key))
        atomic_fetch_add(&get_hits, 1);
    pthread_mutex_unlock(&b->lock);
}

static void cmd_set(const char *key, long value)
{
    struct bucket *b = bucket_of(key);
    pthread_mutex_lock(&b->lock);
    struct item *it = find(b, key);
    it->value = value;
    it->cas_id++;
    pthread_mutex_unlock(&b->lock);
}

static void cmd_incr(const char *key, long delta)
{
    struct bucket *b = bucket_of(key);
    char text[24];
    long value;

    pthread_mutex_lock(&b->lock);
    struct item *it = find(b, key);
    value = it->value; /* guilty */
    pthread_mutex_unlock(&b->lock);

    value += delta;
    snprintf(text, sizeof text, "%ld", value);

    pthread_mutex_lock(&b->lock);
    it->value = value; /* guilty */
    it->cas_id++;
    pthread_mutex_unlock(&b->lock);
}

static const struct command script[CONNS][6] = {
    { { OP_GET, "motd", 0 }, { OP_INCR, "visits", 1 }, { OP_SET, "mode", 3 },
      { OP_INCR, "bytes", 100 }, { OP_GET, "visits", 0 }, { OP_INCR, "visits", 1 } },
    { { OP_SET, "motd", 7 }, { OP_GET, "mode", 0 }, { OP_INCR, "visits", 1 },
      { OP_GET, "bytes", 0 }, { OP_SET, "mode", 4 }, { OP_GET, "motd", 0 } },
    { { OP_GET, "bytes", 0 }, { OP_SET, "motd", 9 }, { OP_GET, "mode", 0 },
      { OP_INCR, "bytes", 50 }, { OP_INCR, "visits", 1 }, { OP_GET, "bytes", 0 } },
};

static void *conn_main(void *arg)
{
    const struct command *cmd = arg;
    for (int i = 0; i < 6; i++, cmd++) {
        atomic_fetch_add(&cmd_total, 1);
        if (cmd->op == OP_GET)
            cmd_get(cmd->key);
        else if (cmd->op == OP_SET)
            cmd_set(cmd->key, cmd->arg);
        else
            cmd_incr(cmd->key, cmd->arg);
    }
    return NULL;
}

int main(void)
{
    pthread_t tid[CONNS];

    for (int i = 0; i < BUCKETS; i++)
        pthread_mutex_init(&table[i].lock, NULL);
    store_new("motd", 1);
    store_new("mode", 2);
    store_new("visits", 0);
    store_new("bytes", 0);
    for (int i = 0; i < CONNS; i++)
        pthread_create(&tid[i], NULL, conn_main, (void *)script[i]);
    for (int i = 0; i < CONNS; i++)
        pthread_join(tid[i], NULL);

    long visits = find(bucket_of("visits"), "visits")->value;
    long bytes = find(bucket_of("bytes"), "bytes")->value;
    printf("%ld commands, visits=%ld (4), bytes=%ld (150)\n", atomic_load(&cmd_total), visits, bytes);
    return (visits == 4 && bytes == 150) ? 0 : 1;
}
