// What is wrong: a deposit reads and writes the balance in two critical sections, and another one
// comes in between. The wrong balance becomes part of a subtotal, of a total, of a share, and
// an auditor in another thread finds the share wrong.
// Isolate: rr
// Cause: atomicity
// Guilty: 2 lines

#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long balance, subtotal, total, share;

static void *deposit(void *argument)
{
    long number = (long)argument;
    usleep(number == 1 ? 0 : 1000);
    pthread_mutex_lock(&lock);
    long before = balance; /* guilty */
    pthread_mutex_unlock(&lock);
    if (number == 1)
        usleep(2000);
    pthread_mutex_lock(&lock);
    balance = before + 50; /* guilty */
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *book(void *argument)
{
    (void)argument;
    usleep(4000);
    pthread_mutex_lock(&lock);
    subtotal = balance;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    total = subtotal + 20;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    share = total / 4;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *audit(void *argument)
{
    (void)argument;
    usleep(6000);
    pthread_mutex_lock(&lock);
    assert(share == 30);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, deposit, (void *)(i + 1));
    pthread_create(&threads[2], NULL, book, NULL);
    pthread_create(&threads[3], NULL, audit, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
