// About: a loop of pthread_mutex_trylock for a lock whose owner waits for the looping thread.
// Covers: pthread_mutex_trylock
// Outcome: exit 0 | livelock
// Steps: 300000
// Must: livelock
#include <pthread.h>
#include <sched.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int count;

static void *insist(void *argument)
{
    while (pthread_mutex_trylock(&lock) != 0)
        sched_yield();
    count++;
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, insist, NULL);
    pthread_mutex_lock(&lock);
    count++;
    pthread_join(thread, NULL);
    pthread_mutex_unlock(&lock);
    return 0;
}
