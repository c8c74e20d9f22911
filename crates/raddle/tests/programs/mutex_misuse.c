// About: a normal mutex that a thread unlocks which does not hold it.
// Covers: pthread_mutex_lock, pthread_mutex_unlock
// Outcome: exit 0 | misuse
// Must: misuse
//
// glibc lets it happen, so the program natively ends well.
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *releases_for_another(void *argument)
{
    (void)argument;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t thread;
    pthread_mutex_lock(&lock);
    pthread_create(&thread, NULL, releases_for_another, NULL);
    pthread_join(thread, NULL);
    return 0;
}
