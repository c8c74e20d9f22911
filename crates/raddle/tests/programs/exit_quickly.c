// About: quick_exit, at_quick_exit, while another thread runs.
// Covers: quick_exit
// Outcome: exit 7
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_handlers, count;

static void on_exit_handler(void)
{
    _exit(9);
}

static void second(void)
{
    pthread_mutex_lock(&lock);
    if (n_handlers != 1)
        _exit(8);
    pthread_mutex_unlock(&lock);
}

static void first(void)
{
    pthread_mutex_lock(&lock);
    n_handlers++;
    pthread_mutex_unlock(&lock);
}

static void *work(void *argument)
{
    for (;;) {
        pthread_mutex_lock(&lock);
        count++;
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

int main(void)
{
    pthread_t thread;
    if (atexit(on_exit_handler) != 0 || at_quick_exit(second) != 0 || at_quick_exit(first) != 0)
        return 1;
    pthread_create(&thread, NULL, work, NULL);
    quick_exit(7);
}
