// About: a check and an act, each under the lock, but not together: no data race, yet wrong.
// Covers: pthread_mutex_lock, pthread_mutex_unlock
// Outcome: exit 0 | exit 1
// Must: exit 1
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int balance = 100;

static int get(void)
{
    pthread_mutex_lock(&lock);
    int value = balance;
    pthread_mutex_unlock(&lock);
    return value;
}

static void *withdraw(void *argument)
{
    if (get() >= 80) {
        pthread_mutex_lock(&lock);
        balance -= 80;
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, withdraw, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return balance < 0;
}
