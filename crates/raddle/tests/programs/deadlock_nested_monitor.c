// About: a wait on a condition variable under a second lock, which the signaller needs.
// Covers: pthread_cond_signal, pthread_cond_wait
// Outcome: exit 0 | deadlock
// Must: deadlock
#include <pthread.h>

static pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t inner = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int items;

static void *take(void *argument)
{
    pthread_mutex_lock(&outer);
    pthread_mutex_lock(&inner);
    while (items == 0)
        pthread_cond_wait(&filled, &inner);
    items--;
    pthread_mutex_unlock(&inner);
    pthread_mutex_unlock(&outer);
    return argument;
}

static void *put(void *argument)
{
    pthread_mutex_lock(&outer);
    pthread_mutex_lock(&inner);
    items++;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&inner);
    pthread_mutex_unlock(&outer);
    return argument;
}

int main(void)
{
    pthread_t taker, putter;
    pthread_create(&taker, NULL, take, NULL);
    pthread_create(&putter, NULL, put, NULL);
    pthread_join(taker, NULL);
    pthread_join(putter, NULL);
    return 0;
}
