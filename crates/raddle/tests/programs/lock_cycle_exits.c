// About: a lock cycle of two threads beside one that ends the program.
// Covers: pthread_mutex_lock, pthread_mutex_unlock, usleep, sleep
// Outcome: exit 0
// Free: no, whether a cycle forms there is a matter of luck.
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t right = PTHREAD_MUTEX_INITIALIZER;

static void both(pthread_mutex_t *first, pthread_mutex_t *second)
{
    pthread_mutex_lock(first);
    usleep(1000);
    pthread_mutex_lock(second);
    abort();
}

static void *from_left(void *argument)
{
    both(&left, &right);
    return argument;
}

static void *from_right(void *argument)
{
    both(&right, &left);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, from_left, NULL);
    pthread_create(&threads[1], NULL, from_right, NULL);
    sleep(1);
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    for (int i = 0; i < 1000; i++) {
        pthread_mutex_lock(&lock);
        pthread_mutex_unlock(&lock);
    }
    return 0;
}
