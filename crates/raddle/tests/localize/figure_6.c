// What is wrong: figure 6 of the LOCON paper, after MySQL: the name of the log and the log itself
// are changed together, and looked at together, but neither is atomic. Two variables, and yet one
// pair tells: the log is read if the name is the old one only, so that no passing run reads the
// new log. The numbers of the paper's lines are in the comments.
// Localize: I
// Pattern: W1-R2
// Pairs: 1

#include <pthread.h>
#include <stddef.h>

static const char MYSQL[] = "MySQL";
static const char SQL[] = "SQL";
static const char BINLOG_MAGIC[] = "\xfe\x62\x69\x6e";
static const char OTHER_MAGIC[] = "\x43";

static const char *log_file_name = MYSQL;
static const char *cur_log = BINLOG_MAGIC;
static int n_events[4];

static void work(int *counts)
{
    for (int i = 0; i < 4; i++)
        counts[i]++;
}

static void *next_event(void *argument)
{
    (void)argument;
    work(n_events);
    if (log_file_name == MYSQL) {         /* 2 */
        work(n_events);
        if (cur_log != BINLOG_MAGIC) /* tail */ /* falcon */ /* 3 */
            return (void *)1L;
    }
    return NULL;
}

static void *queue_event(void *argument)
{
    log_file_name = SQL;                  /* 8 */
    cur_log = OTHER_MAGIC; /* head */ /* falcon */ /* 9 */
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    void *err;

    pthread_create(&threads[0], NULL, next_event, NULL);
    pthread_create(&threads[1], NULL, queue_event, NULL);
    pthread_join(threads[0], &err);
    pthread_join(threads[1], NULL);
    return (int)(long)err;
}
