// What is wrong: after Apache's buffered log (bug 25520): a line is copied to where the buffer
// ends, and then the end is moved. Buffer and end belong together, but no lock keeps them so:
// two workers copy to the same place, and the log is garbled or short.
// Hunt: fails
// Kind: multi-variable, atomicity, race
// Guilty: 3 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define N_WORKERS 2
#define N_LINES 3

struct buffered_log {
    size_t outcnt;
    char outbuf[512];
};

static struct buffered_log access_log;

static void log_line(struct buffered_log *log, const char *line, size_t length)
{
    char *to = &log->outbuf[log->outcnt]; /* guilty */
    for (size_t i = 0; i < length; i++)
        to[i] = line[i]; /* guilty */
    log->outcnt += length; /* guilty */
}

static void *work(void *argument)
{
    char line[16];
    for (int i = 0; i < N_LINES; i++) {
        int length = snprintf(line, sizeof line, "GET /%s%d\n", (const char *)argument, i);
        log_line(&access_log, line, length);
    }
    return NULL;
}

int main(void)
{
    pthread_t workers[N_WORKERS];
    static const char *const names[N_WORKERS] = {"a", "b"};
    int n_seen = 0;

    for (int i = 0; i < N_WORKERS; i++)
        pthread_create(&workers[i], NULL, work, (void *)names[i]);
    for (int i = 0; i < N_WORKERS; i++)
        pthread_join(workers[i], NULL);

    char *rest = access_log.outbuf;
    for (char *line; (line = strsep(&rest, "\n")) != NULL && *line != 0;) {
        assert(strlen(line) == strlen("GET /a0"));
        assert(strncmp(line, "GET /", 5) == 0);
        n_seen++;
    }
    assert(n_seen == N_WORKERS * N_LINES);
    return 0;
}
