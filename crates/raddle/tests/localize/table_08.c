// What is wrong: row 8 of Table 1 of the LOCON paper, two variables: a seller looks at the price
// and places an order, and another thread changes the price and looks for an order at the old
// price. Inconsistent results where it does both between the seller's steps: the old price is
// used, and nobody has seen the order. (The other illegal order is harmless here.)
// Localize: III pc
// Pairs: 2

#include <assert.h>
#include <pthread.h>

static int price = 10;
static int order;
static int seller_counts[6];
static int changer_counts[6];

static void work(int *counts)
{
    for (int i = 0; i < 6; i++)
        counts[i]++;
}

static void *sell(void *argument)
{
    (void)argument;
    long paid = price; /* head 1 */
    work(seller_counts);
    work(seller_counts);
    order = 1; /* tail 2 */
    return (void *)paid;
}

static void *change_price(void *argument)
{
    (void)argument;
    price = 20; /* tail 1 */
    work(changer_counts);
    work(changer_counts);
    long seen = order; /* head 2 */
    return (void *)seen;
}

int main(void)
{
    pthread_t threads[2];
    void *paid, *seen;

    pthread_create(&threads[0], NULL, sell, NULL);
    pthread_create(&threads[1], NULL, change_price, NULL);
    pthread_join(threads[0], &paid);
    pthread_join(threads[1], &seen);
    assert((long)paid == 20 || (long)seen == 1);
    return 0;
}
