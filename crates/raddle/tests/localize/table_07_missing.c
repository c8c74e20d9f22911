// What is wrong: row 7 of Table 1 of the LOCON paper, second case: as table_07.c, but the reader
// notices at once and stops the program before the second write. The pair from the first write to
// the read tells that run apart by itself.
// Localize: I
// Pattern: W1-R2
// Pairs: 1

#include <assert.h>
#include <pthread.h>

enum { CLOSED, OPEN };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_state = OPEN;
static int n_changes[4];
static int n_lines[4];

static void work(int *counts)
{
    for (int i = 0; i < 4; i++)
        counts[i]++;
}

static void *change_log(void *argument)
{
    work(n_changes);
    pthread_mutex_lock(&lock);
    log_state = CLOSED; /* head */ /* falcon */
    pthread_mutex_unlock(&lock);
    work(n_changes);
    pthread_mutex_lock(&lock);
    log_state = OPEN;
    pthread_mutex_unlock(&lock);
    return argument;
}

static void *write_line(void *argument)
{
    work(n_lines);
    pthread_mutex_lock(&lock);
    int seen = log_state; /* tail */ /* falcon */
    assert(seen == OPEN);
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, change_log, NULL);
    pthread_create(&threads[1], NULL, write_line, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
