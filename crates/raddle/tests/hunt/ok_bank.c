// Nothing is wrong: transfers lock both accounts, the one with the lower number first, and hold
// both until all is done. An auditor locks all of them in the same order.
// Hunt: clean

#include <assert.h>
#include <pthread.h>

#define N_ACCOUNTS 4
#define START 100

struct account {
    pthread_mutex_t lock;
    int balance;
};

static struct account accounts[N_ACCOUNTS];

static int transfer(int from, int to, int amount)
{
    int first = from < to ? from : to;
    int second = from < to ? to : from;
    int done = 0;

    pthread_mutex_lock(&accounts[first].lock);
    pthread_mutex_lock(&accounts[second].lock);
    if (accounts[from].balance >= amount) {
        accounts[from].balance -= amount;
        accounts[to].balance += amount;
        done = 1;
    }
    pthread_mutex_unlock(&accounts[second].lock);
    pthread_mutex_unlock(&accounts[first].lock);
    return done;
}

static int audit(void)
{
    int sum = 0;
    for (int i = 0; i < N_ACCOUNTS; i++)
        pthread_mutex_lock(&accounts[i].lock);
    for (int i = 0; i < N_ACCOUNTS; i++)
        sum += accounts[i].balance;
    for (int i = N_ACCOUNTS; i-- > 0;)
        pthread_mutex_unlock(&accounts[i].lock);
    return sum;
}

static void *forward(void *argument)
{
    for (int i = 0; i < N_ACCOUNTS; i++)
        transfer(i, (i + 1) % N_ACCOUNTS, 70);
    return argument;
}

static void *backward(void *argument)
{
    for (int i = 0; i < N_ACCOUNTS; i++)
        transfer((i + 1) % N_ACCOUNTS, i, 60);
    return argument;
}

static void *auditor(void *argument)
{
    for (int i = 0; i < 3; i++)
        assert(audit() == N_ACCOUNTS * START);
    return argument;
}

int main(void)
{
    void *(*const jobs[3])(void *) = {forward, backward, auditor};
    pthread_t threads[3];

    for (int i = 0; i < N_ACCOUNTS; i++) {
        pthread_mutex_init(&accounts[i].lock, NULL);
        accounts[i].balance = START;
    }
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, jobs[i], NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert(audit() == N_ACCOUNTS * START);
    return 0;
}
