// What is wrong: to rotate its log, the server marks it closed and then open again, as MySQL
// did (bug 791). Whoever wants to log something in between finds the log closed (W-R-W), takes
// that for "logging is off", and the entry is lost.
// Hunt: fails
// Kind: atomicity
// Guilty: 3 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

enum log_type { LOG_CLOSED, LOG_BIN };

struct binlog {
    pthread_mutex_t lock;
    enum log_type type;
    int generation;
    int n_entries;
};

static struct binlog binlog = {PTHREAD_MUTEX_INITIALIZER, LOG_BIN, 1, 0};

static void log_close(void)
{
    pthread_mutex_lock(&binlog.lock);
    binlog.type = LOG_CLOSED; /* guilty */
    pthread_mutex_unlock(&binlog.lock);
}

static void log_open(void)
{
    pthread_mutex_lock(&binlog.lock);
    binlog.generation++;
    binlog.type = LOG_BIN; /* guilty */
    pthread_mutex_unlock(&binlog.lock);
}

static void log_write(int statement)
{
    (void)statement;
    pthread_mutex_lock(&binlog.lock);
    if (binlog.type != LOG_CLOSED) /* guilty */
        binlog.n_entries++;
    pthread_mutex_unlock(&binlog.lock);
}

static void *client(void *argument)
{
    for (int i = 0; i < 4; i++)
        log_write(i);
    return argument;
}

static void *flush_logs(void *argument)
{
    log_close();
    log_open();
    return argument;
}

int main(void)
{
    pthread_t clients[2], flusher;

    for (int i = 0; i < 2; i++)
        pthread_create(&clients[i], NULL, client, NULL);
    pthread_create(&flusher, NULL, flush_logs, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(clients[i], NULL);
    pthread_join(flusher, NULL);

    printf("%d entries, log %d\n", binlog.n_entries, binlog.generation);
    assert(binlog.n_entries == 8);
    return 0;
}
