// What is wrong: the main thread waits for "loaded" without asking whether that has happened
// already. A loader that signals before the wait has begun signals nobody, and main waits
// for ever.
// Hunt: fails
// Kind: order, deadlock, failure
// Guilty: 2 lines
// Shows: lost-wakeup

#include <assert.h>
#include <pthread.h>

#define N_MODULES 6

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t loaded = PTHREAD_COND_INITIALIZER;
static int modules[N_MODULES];
static int n_log_lines;

static void log_line(void)
{
    pthread_mutex_lock(&lock);
    n_log_lines++;
    pthread_mutex_unlock(&lock);
}

static void *load(void *argument)
{
    for (int i = 0; i < N_MODULES; i++) {
        log_line();
        pthread_mutex_lock(&lock);
        modules[i] = i + 1;
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    pthread_cond_signal(&loaded); /* guilty */
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_t loader;

    pthread_create(&loader, NULL, load, NULL);
    log_line();

    pthread_mutex_lock(&lock);
    pthread_cond_wait(&loaded, &lock); /* guilty */
    for (int i = 0; i < N_MODULES; i++)
        assert(modules[i] == i + 1);
    pthread_mutex_unlock(&lock);

    pthread_join(loader, NULL);
    assert(n_log_lines == N_MODULES + 1);
    return 0;
}
