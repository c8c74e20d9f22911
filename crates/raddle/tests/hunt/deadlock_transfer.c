// What is wrong: a transfer locks the account that pays, then the one that is paid. Two
// transfers between the same accounts in opposite directions can each hold one and wait for
// the other.
// Hunt: fails
// Kind: deadlock
// Guilty: 2 lines
// Shows: deadlock

#include <assert.h>
#include <pthread.h>

#define N_ACCOUNTS 4

struct account {
    pthread_mutex_t lock;
    int balance;
    int n_transfers;
};

struct order {
    int from;
    int to;
    int amount;
};

static struct account accounts[N_ACCOUNTS];

static int transfer(struct account *from, struct account *to, int amount)
{
    int done = 0;

    pthread_mutex_lock(&from->lock); /* guilty */
    pthread_mutex_lock(&to->lock); /* guilty */
    if (from->balance >= amount) {
        from->balance -= amount;
        to->balance += amount;
        from->n_transfers++;
        done = 1;
    }
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_unlock(&from->lock);
    return done;
}

static void *clerk(void *argument)
{
    for (const struct order *order = argument; order->amount > 0; order++)
        transfer(&accounts[order->from], &accounts[order->to], order->amount);
    return NULL;
}

int main(void)
{
    static const struct order orders[2][4] = {
        {{0, 1, 10}, {1, 2, 5}, {0, 3, 20}, {0, 0, 0}},
        {{0, 2, 10}, {1, 3, 5}, {2, 1, 10}, {0, 0, 0}},
    };
    pthread_t clerks[2];
    int sum = 0;

    for (int i = 0; i < N_ACCOUNTS; i++) {
        pthread_mutex_init(&accounts[i].lock, NULL);
        accounts[i].balance = 100;
    }
    for (int i = 0; i < 2; i++)
        pthread_create(&clerks[i], NULL, clerk, (void *)orders[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(clerks[i], NULL);
    for (int i = 0; i < N_ACCOUNTS; i++)
        sum += accounts[i].balance;
    assert(sum == 100 * N_ACCOUNTS);
    return 0;
}
