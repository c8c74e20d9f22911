// About: pthread_exit of the main thread: the others go on, one joins it, the last one ends the process.
// Covers: atexit
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_t main_thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_done;

static void at_exit(void)
{
    assert(n_done == 3);
}

static void *work(void *argument)
{
    usleep(10000);
    pthread_mutex_lock(&lock);
    n_done++;
    pthread_mutex_unlock(&lock);
    return argument;
}

static void *joins_main(void *argument)
{
    void *result;
    assert(pthread_join(main_thread, &result) == 0 && result == &lock);
    return work(argument);
}

int main(void)
{
    pthread_t thread;
    main_thread = pthread_self();
    assert(atexit(at_exit) == 0);
    assert(pthread_create(&thread, NULL, joins_main, NULL) == 0);
    assert(pthread_create(&thread, NULL, work, NULL) == 0);
    assert(pthread_create(&thread, NULL, work, NULL) == 0);
    pthread_exit(&lock);
}
