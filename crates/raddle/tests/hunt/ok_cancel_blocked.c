// Nothing is wrong: two workers are canceled while they block, one in a read, one in a wait for a
// condition. Their cleanup handlers release the lock and the memory that they hold.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int ends[2];
static int n_lines;
static int n_cleaned;
static int stop;

static void clean(void *buffer)
{
    free(buffer);
    pthread_mutex_lock(&lock);
    n_cleaned++;
    pthread_mutex_unlock(&lock);
}

static void unlock(void *mutex)
{
    pthread_mutex_unlock(mutex);
}

static void *read_lines(void *argument)
{
    char *buffer = malloc(64);

    pthread_cleanup_push(clean, buffer);
    for (;;) {
        ssize_t n = read(ends[0], buffer, 64);
        assert(n > 0);
        pthread_mutex_lock(&lock);
        for (ssize_t i = 0; i < n; i++)
            n_lines += buffer[i] == '\n';
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
    }
    pthread_cleanup_pop(1);
    return argument;
}

static void *wait_for_stop(void *argument)
{
    char *buffer = malloc(16);

    pthread_cleanup_push(clean, buffer);
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(unlock, &lock);
    while (!stop)
        pthread_cond_wait(&changed, &lock);
    pthread_cleanup_pop(1);
    pthread_cleanup_pop(1);
    return argument;
}

int main(void)
{
    pthread_t reader, waiter;
    void *result;

    assert(pipe(ends) == 0);
    pthread_create(&reader, NULL, read_lines, NULL);
    pthread_create(&waiter, NULL, wait_for_stop, NULL);
    assert(write(ends[1], "one\ntwo\n", 8) == 8);
    pthread_mutex_lock(&lock);
    while (n_lines < 2)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    pthread_cancel(reader);
    pthread_cancel(waiter);
    pthread_join(reader, &result);
    assert(result == PTHREAD_CANCELED);
    pthread_join(waiter, &result);
    assert(result == PTHREAD_CANCELED);
    pthread_mutex_lock(&lock);
    assert(n_cleaned == 2 && n_lines == 2);
    pthread_mutex_unlock(&lock);
    close(ends[0]);
    close(ends[1]);
    return 0;
}
