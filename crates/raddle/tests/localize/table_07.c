// What is wrong: row 7 of Table 1 of the LOCON paper, W-R-W on one variable: the log is closed
// for a moment while it is changed, and another thread sees that. An unexpected intermediate
// value is read between the writes; the reader goes on, and it is noticed at the end only.
// Localize: I
// Pattern: W1-R2-W1
// Pairs: 2

#include <assert.h>
#include <pthread.h>

enum { CLOSED, OPEN };

static volatile int log_state = OPEN;
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
    log_state = CLOSED; /* head 1 */ /* falcon */
    work(n_changes);
    log_state = OPEN; /* tail 2 */ /* falcon */
    return argument;
}

static void *write_line(void *argument)
{
    (void)argument;
    work(n_lines);
    long seen = log_state; /* tail 1 */ /* head 2 */ /* falcon */
    return (void *)seen;
}

int main(void)
{
    pthread_t threads[2];
    void *seen;

    pthread_create(&threads[0], NULL, change_log, NULL);
    pthread_create(&threads[1], NULL, write_line, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], &seen);
    assert((long)seen == OPEN);
    return 0;
}
