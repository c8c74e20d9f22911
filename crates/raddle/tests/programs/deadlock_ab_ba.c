// About: two locks, taken in opposite orders by two threads.
// Covers: pthread_mutex_lock, pthread_mutex_unlock
// Outcome: exit 0 | deadlock
// Must: deadlock
#include <assert.h>
#include <pthread.h>

struct account {
    pthread_mutex_t lock;
    int balance;
};

static struct account a = { PTHREAD_MUTEX_INITIALIZER, 100 };
static struct account b = { PTHREAD_MUTEX_INITIALIZER, 100 };

static void transfer(struct account *from, struct account *to, int amount)
{
    pthread_mutex_lock(&from->lock);
    from->balance -= amount;
    pthread_mutex_lock(&to->lock);
    to->balance += amount;
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_unlock(&from->lock);
}

static void *forth(void *argument)
{
    (void)argument;
    for (int i = 0; i < 5; i++)
        transfer(&a, &b, 10);
    return NULL;
}

static void *back(void *argument)
{
    (void)argument;
    for (int i = 0; i < 5; i++)
        transfer(&b, &a, 5);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, forth, NULL);
    pthread_create(&threads[1], NULL, back, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(a.balance == 75 && b.balance == 125);
    return 0;
}
