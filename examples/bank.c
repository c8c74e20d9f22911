// A bank account with two tellers.
//
// What is wrong: `withdraw` reads the balance, decides, and writes it back, without holding
// a lock from the first to the last. If the other teller withdraws in between, one of the
// two withdrawals is forgotten: the bank hands out money that it still believes to have.
//
// Most runs pass. `raddle run --seed N -- bank.c` tries the order that N stands for, and
// the same N always gives the same order.

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static int balance = 100;

static int withdraw(int amount)
{
    int before = balance;
    if (before < amount)
        return 0;
    balance = before - amount;
    return amount;
}

static void *teller(void *handed_out)
{
    *(int *)handed_out = withdraw(40);
    return NULL;
}

int main(void)
{
    pthread_t tellers[2];
    int handed_out[2] = {0, 0};

    for (int i = 0; i < 2; i++)
        pthread_create(&tellers[i], NULL, teller, &handed_out[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(tellers[i], NULL);

    printf("handed out %d and %d, %d left\n", handed_out[0], handed_out[1], balance);
    assert(balance == 100 - handed_out[0] - handed_out[1]);
    return 0;
}
