// Nothing is wrong: a watchdog ends the process if main takes longer than a minute, and main
// returns at once. That main could be slow to return does not mean that a minute passes.
// Hunt: clean

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_started;

static void *watch(void *argument)
{
    (void)argument;
    sleep(60);
    abort();
}

static void *work(void *argument)
{
    pthread_mutex_lock(&lock);
    n_started++;
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    void *(*const starts[])(void *) = {watch, work, work};

    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, starts[i], NULL);
        pthread_detach(thread);
    }
    return 0;
}
