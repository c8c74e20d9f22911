// About: a thread that is joined under a lock that it needs.
// Covers: pthread_mutex_lock, pthread_mutex_unlock
// Outcome: exit 0 | deadlock
// Must: deadlock
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int stopping;

static void *work(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&lock);
    int last = stopping;
    pthread_mutex_unlock(&lock);
    return last ? argument : NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_mutex_lock(&lock);
    stopping = 1;
    pthread_join(thread, NULL);
    pthread_mutex_unlock(&lock);
    return 0;
}
