// About: abort in a thread while another holds a lock.
// Covers: pthread_mutex_trylock, Signal
// Outcome: signal SIGABRT
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *give_up(void *argument)
{
    if (pthread_mutex_trylock(&lock) != 0)
        abort();
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_mutex_lock(&lock);
    pthread_create(&thread, NULL, give_up, NULL);
    pthread_join(thread, NULL);
    return 0;
}
