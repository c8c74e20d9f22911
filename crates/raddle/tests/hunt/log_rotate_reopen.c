// What is wrong: the log is rotated by closing its file and opening the next one, while
// writers look the file up without a lock. Between the two there is none, and a writer that
// has looked before writes to a closed one.
// Hunt: fails
// Kind: atomicity, order, race
// Guilty: 4 lines
// Shows: signal, use-after-free

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct log_file {
    int number;
    int n_lines;
    int open;
};

static struct log_file *volatile current;
static pthread_mutex_t rotate_lock = PTHREAD_MUTEX_INITIALIZER;
static int n_rotations;
static _Atomic int n_written;

static struct log_file *log_open(int number)
{
    struct log_file *log = calloc(1, sizeof *log);
    log->number = number;
    log->open = 1;
    return log;
}

static void rotate(void)
{
    pthread_mutex_lock(&rotate_lock);
    struct log_file *old = current;
    current = NULL; /* guilty */
    n_rotations++;
    old->open = 0;
    free(old); /* guilty */
    current = log_open(n_rotations);
    pthread_mutex_unlock(&rotate_lock);
}

static void log_line(void)
{
    struct log_file *log = current; /* guilty */
    log->n_lines++; /* guilty */
    n_written++;
}

static void *work(void *argument)
{
    for (int i = 0; i < 5; i++)
        log_line();
    return argument;
}

static void *housekeeping(void *argument)
{
    rotate();
    rotate();
    return argument;
}

int main(void)
{
    pthread_t worker, keeper;

    current = log_open(0);
    pthread_create(&worker, NULL, work, NULL);
    pthread_create(&keeper, NULL, housekeeping, NULL);
    pthread_join(worker, NULL);
    pthread_join(keeper, NULL);
    printf("%d lines, file %d\n", n_written, current->number);
    free(current);
    return n_written == 5 ? 0 : 1;
}
