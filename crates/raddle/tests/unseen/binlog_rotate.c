/*
 * Component: replication log of a database server. Client sessions update a
 * table and append an event to the current binlog file; a maintenance thread
 * rotates the log to a new file.
 *
 * Bug (atomicity violation, cf. MySQL #791): a rotation closes the log and
 * opens it again; both stores to `type` are made under the log lock, but
 * sessions test "is the binlog open?" without it. A session that looks between
 * the close and the open believes that logging is switched off and silently
 * skips its event, so the replica ends up different from the table.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define SESSIONS 2
#define COMMITS 6
#define ROTATIONS 2
#define ROWS 4
#define MAXEV 32

enum log_type { LOG_CLOSED, LOG_BIN };

struct event {
    int row;
    int delta;
};

struct log_file {
    int nevents;
    struct event ev[MAXEV];
};

static struct {
    pthread_mutex_t lock;
    atomic_int type;
    int current;
    int switches;
    struct log_file file[ROTATIONS + 1];
} binlog = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct {
    pthread_mutex_t lock;
    int row[ROWS];
    int version;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static atomic_int commits_done;

static void binlog_close(void)
{
    atomic_store(&binlog.type, LOG_CLOSED); /* guilty */
    binlog.switches++;
}

static void binlog_open(int number)
{
    binlog.current = number;
    binlog.file[number].nevents = 0;
    atomic_store(&binlog.type, LOG_BIN); /* guilty */
}

static int binlog_is_open(void)
{
    return atomic_load(&binlog.type) != LOG_CLOSED; /* guilty */
}

static void binlog_rotate(void)
{
    pthread_mutex_lock(&binlog.lock);
    int next = binlog.current + 1;
    binlog_close();
    binlog_open(next);
    pthread_mutex_unlock(&binlog.lock);
}

static void binlog_write(struct event ev)
{
    pthread_mutex_lock(&binlog.lock);
    struct log_file *f = &binlog.file[binlog.current];
    f->ev[f->nevents] = ev;
    f->nevents++;
    pthread_mutex_unlock(&binlog.lock);
}

static void commit(int row, int delta)
{
    struct event ev = { row, delta };

    pthread_mutex_lock(&table.lock);
    table.row[row] += delta;
    table.version++;
    pthread_mutex_unlock(&table.lock);
    if (binlog_is_open())
        binlog_write(ev);
    atomic_fetch_add(&commits_done, 1);
}

static void *session_main(void *arg)
{
    int id = (int)(size_t)arg;
    for (int i = 0; i < COMMITS; i++)
        commit((id + i) % ROWS, 10 * id + i + 1);
    return NULL;
}

static void *rotate_main(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROTATIONS; i++)
        binlog_rotate();
    return NULL;
}

static void replay(int *replica)
{
    for (int f = 0; f <= binlog.current; f++) {
        for (int i = 0; i < binlog.file[f].nevents; i++)
            replica[binlog.file[f].ev[i].row] += binlog.file[f].ev[i].delta;
    }
}

int main(void)
{
    pthread_t tid[SESSIONS + 1];
    int replica[ROWS] = { 0 };

    binlog_open(0);
    for (size_t i = 0; i < SESSIONS; i++)
        pthread_create(&tid[i], NULL, session_main, (void *)i);
    pthread_create(&tid[SESSIONS], NULL, rotate_main, NULL);
    for (int i = 0; i < SESSIONS + 1; i++)
        pthread_join(tid[i], NULL);

    replay(replica);
    for (int r = 0; r < ROWS; r++) {
        printf("row %d: master %d replica %d\n", r, table.row[r], replica[r]);
        assert(table.row[r] == replica[r]);
    }
    assert(atomic_load(&commits_done) == SESSIONS * COMMITS);
    return 0;
}
