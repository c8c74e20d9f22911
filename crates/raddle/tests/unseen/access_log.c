/*
 * Component: buffered access log of a small web server. Every virtual host
 * owns one in-memory log buffer; the request workers append one fixed-size
 * record per request and the buffers are written out at shutdown.
 *
 * Bug (atomicity violation, cf. Apache httpd #25520): buffered_log_write()
 * reads the fill count, copies the record to that position and stores the
 * increased count, all without a lock. If a second worker logs to the same
 * host between the read and the store, both records go to the same place and
 * one of them is lost. (Error log and hit counters are synchronised properly.)
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define WORKERS 3
#define REQUESTS 6
#define HOSTS 2
#define REC 32
#define CAP (WORKERS * REQUESTS * REC)

struct log_buffer {
    int outcnt;
    char outbuf[CAP];
};

struct vhost {
    const char *name;
    atomic_int hits;
    struct log_buffer log;
};

static struct vhost hosts[HOSTS] = { { .name = "www" }, { .name = "api" } };

static pthread_mutex_t error_lock = PTHREAD_MUTEX_INITIALIZER;
static int error_count;
static char error_last[REC];

static unsigned hash_uri(unsigned worker, unsigned req)
{
    unsigned h = 2166136261u;
    for (unsigned i = 0; i < 16; i++) {
        h ^= worker * 31 + req * 7 + i;
        h *= 16777619u;
    }
    return h;
}

static void buffered_log_write(struct log_buffer *log, const char *rec)
{
    int at = log->outcnt; /* guilty */
    if (at + REC > CAP)
        return;
    memcpy(&log->outbuf[at], rec, REC);
    log->outcnt = at + REC; /* guilty */
}

static void error_log_write(const char *rec)
{
    pthread_mutex_lock(&error_lock);
    memcpy(error_last, rec, REC);
    error_count++;
    pthread_mutex_unlock(&error_lock);
}

static int handle_request(unsigned worker, unsigned req)
{
    unsigned h = hash_uri(worker, req);
    struct vhost *host = &hosts[h % HOSTS];
    int status = (h % 7 == 0) ? 404 : 200;
    char rec[REC];

    memset(rec, ' ', sizeof rec);
    snprintf(rec, sizeof rec, "%s w%u r%u %d", host->name, worker, req, status);
    if (status != 200)
        error_log_write(rec);
    buffered_log_write(&host->log, rec);
    atomic_fetch_add(&host->hits, 1);
    return status;
}

static void *worker_main(void *arg)
{
    unsigned id = (unsigned)(size_t)arg;
    size_t ok = 0;

    for (unsigned r = 0; r < REQUESTS; r++) {
        if (handle_request(id, r) == 200)
            ok++;
    }
    return (void *)ok;
}

static int flush_host(struct vhost *host)
{
    int records = host->log.outcnt / REC;
    int good = 0;

    for (int i = 0; i < records; i++) {
        const char *rec = &host->log.outbuf[i * REC];
        if (memcmp(rec, host->name, strlen(host->name)) == 0)
            good++;
    }
    return good;
}

int main(void)
{
    pthread_t tid[WORKERS];
    size_t ok = 0;
    int logged = 0;

    for (size_t i = 0; i < WORKERS; i++)
        pthread_create(&tid[i], NULL, worker_main, (void *)i);
    for (size_t i = 0; i < WORKERS; i++) {
        void *res;
        pthread_join(tid[i], &res);
        ok += (size_t)res;
    }
    assert(ok + (size_t)error_count == WORKERS * REQUESTS);
    for (int h = 0; h < HOSTS; h++) {
        int n = flush_host(&hosts[h]);
        assert(n == atomic_load(&hosts[h].hits));
        logged += n;
    }
    printf("logged %d requests, %d errors\n", logged, error_count);
    return 0;
}
