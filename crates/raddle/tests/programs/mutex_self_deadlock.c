// About: a normal mutex that its owner locks again.
// Covers: pthread_mutex_lock, pthread_mutex_unlock
// Outcome: deadlock
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int entries;

static void log_entry(void)
{
    pthread_mutex_lock(&lock);
    entries++;
    pthread_mutex_unlock(&lock);
}

static void *work(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&lock);
    log_entry();
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    return 0;
}
