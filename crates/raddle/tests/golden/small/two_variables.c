// What is wrong: each of two variables has the lock when it is touched, both together have not.

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int low, high;

static void *other(void *p)
{
    pthread_mutex_lock(&lock);
    low = 1;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    high = 1;
    pthread_mutex_unlock(&lock);
    return p;
}

int main(void)
{
    pthread_t thread;
    int one, two;

    pthread_create(&thread, 0, other, 0);
    pthread_mutex_lock(&lock);
    one = low;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    two = high;
    pthread_mutex_unlock(&lock);
    pthread_join(thread, 0);
    return one == two ? 0 : 6;
}
