// Nothing is wrong: a web server with a log, sessions, a page cache, counters and quotas, each
// behind its lock. A quota is checked and charged in one go. The users' last pages depend on
// the order, as they should, and nothing depends on them.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define N_WORKERS 3
#define N_REQUESTS 48

/* The log: a ring of the latest lines. */

#define LOG_SIZE 16

struct log_line {
    int worker;
    int user;
    int bytes;
};

static struct {
    pthread_mutex_t lock;
    struct log_line lines[LOG_SIZE];
    unsigned n_written;
} server_log = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void log_request(int worker, int user, int bytes)
{
    pthread_mutex_lock(&server_log.lock);
    struct log_line *line = &server_log.lines[server_log.n_written++ % LOG_SIZE];
    line->worker = worker;
    line->user = user;
    line->bytes = bytes;
    pthread_mutex_unlock(&server_log.lock);
}

/* Counters: one set per worker, added up at the end; and a gauge for all. */

struct counters {
    unsigned n_requests;
    unsigned n_hits;
    unsigned long n_bytes;
    unsigned n_refused;
};

static struct counters counters[N_WORKERS];
static _Atomic int n_active;

/* Sessions: a hash table with a lock per bucket. */

#define N_BUCKETS 8
#define BUCKET_SIZE 4

struct session {
    int user;
    int n_requests;
    int last_page;
};

static struct bucket {
    pthread_mutex_t lock;
    struct session sessions[BUCKET_SIZE];
    int n_sessions;
} buckets[N_BUCKETS];

static void session_touch(int user, int page)
{
    struct bucket *bucket = &buckets[user % N_BUCKETS];
    struct session *session = NULL;

    pthread_mutex_lock(&bucket->lock);
    for (int i = 0; i < bucket->n_sessions; i++)
        if (bucket->sessions[i].user == user)
            session = &bucket->sessions[i];
    if (session == NULL) {
        assert(bucket->n_sessions < BUCKET_SIZE);
        session = &bucket->sessions[bucket->n_sessions++];
        session->user = user;
    }
    session->n_requests++;
    session->last_page = page;
    pthread_mutex_unlock(&bucket->lock);
}

/* The page cache: a few pages, the least recently used one goes. */

#define CACHE_SIZE 3
#define PAGE_SIZE 24

struct page {
    int number;
    unsigned used;
    char text[PAGE_SIZE];
};

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static struct page cache[CACHE_SIZE] = {{-1, 0, ""}, {-1, 0, ""}, {-1, 0, ""}};
static unsigned cache_clock;

static int cache_get(int number, char *text)
{
    struct page *oldest = &cache[0];
    int hit = 0;

    pthread_mutex_lock(&cache_lock);
    struct page *page = NULL;
    for (int i = 0; i < CACHE_SIZE; i++) {
        if (cache[i].number == number)
            page = &cache[i];
        if (cache[i].used < oldest->used)
            oldest = &cache[i];
    }
    hit = page != NULL;
    if (!hit) {
        page = oldest;
        page->number = number;
        for (int i = 0; i < PAGE_SIZE; i++)
            page->text[i] = 'a' + (number + i) % 26;
    }
    page->used = ++cache_clock;
    memcpy(text, page->text, PAGE_SIZE);
    pthread_mutex_unlock(&cache_lock);
    return hit;
}

/* Quotas: how much a user may still ask for. */

#define N_USERS 12
#define QUOTA 100

static struct quota {
    pthread_mutex_t lock;
    int left;
    int charged;
} quotas[N_USERS];

static int quota_charge(int user, int cost)
{
    int enough;

    pthread_mutex_lock(&quotas[user].lock);
    enough = quotas[user].left >= cost;
    if (enough) {
        quotas[user].left -= cost;
        quotas[user].charged += cost;
    }
    pthread_mutex_unlock(&quotas[user].lock);
    return enough;
}

/* The workers. */

static void serve(int worker, int user, int number)
{
    struct counters *own = &counters[worker];
    char text[PAGE_SIZE];

    atomic_fetch_add(&n_active, 1);
    if (!quota_charge(user, 10)) {
        own->n_refused++;
    } else {
        own->n_hits += cache_get(number, text);
        for (int i = 0; i < PAGE_SIZE; i++)
            assert(text[i] == 'a' + (number + i) % 26);
        own->n_bytes += PAGE_SIZE;
    }
    own->n_requests++;
    session_touch(user, number);
    log_request(worker, user, PAGE_SIZE);
    atomic_fetch_sub(&n_active, 1);
}

static void *work(void *argument)
{
    int worker = *(const int *)argument;
    for (int i = 0; i < N_REQUESTS; i++) {
        /* Users 0 to 8 keep to their worker; user 11 has one request at the first and second. */
        int user = worker * 3 + i % 3;
        if ((worker == 0 && i == 20) || (worker == 1 && i == 23))
            user = 11;
        serve(worker, user, (worker + i * 5) % 7);
    }
    return NULL;
}

int main(void)
{
    static const int numbers[N_WORKERS] = {0, 1, 2};
    pthread_t workers[N_WORKERS];
    unsigned n_requests = 0;

    for (int i = 0; i < N_BUCKETS; i++)
        pthread_mutex_init(&buckets[i].lock, NULL);
    for (int i = 0; i < N_USERS; i++) {
        pthread_mutex_init(&quotas[i].lock, NULL);
        quotas[i].left = QUOTA;
    }
    for (int i = 0; i < N_WORKERS; i++)
        pthread_create(&workers[i], NULL, work, (void *)&numbers[i]);
    for (int i = 0; i < N_WORKERS; i++)
        pthread_join(workers[i], NULL);

    for (int i = 0; i < N_WORKERS; i++)
        n_requests += counters[i].n_requests;
    assert(n_requests == N_WORKERS * N_REQUESTS);
    assert(server_log.n_written == n_requests);
    assert(atomic_load(&n_active) == 0);
    for (int i = 0; i < N_USERS; i++)
        assert(quotas[i].left + quotas[i].charged == QUOTA);
    return 0;
}
