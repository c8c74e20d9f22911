// What is wrong: a shop reads the stock under the lock, decides, and writes the new stock
// under the lock, but lets go of the lock in between. No race, and yet an order that came in
// between is forgotten (R-W-W).
// Hunt: fails
// Kind: atomicity
// Guilty: 2 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define N_ARTICLES 3

struct article {
    pthread_mutex_t lock;
    int stock;
    int n_sold;
};

static struct article articles[N_ARTICLES];

static int stock_of(struct article *article)
{
    pthread_mutex_lock(&article->lock);
    int stock = article->stock; /* guilty */
    pthread_mutex_unlock(&article->lock);
    return stock;
}

static void set_stock(struct article *article, int stock)
{
    pthread_mutex_lock(&article->lock);
    article->stock = stock; /* guilty */
    pthread_mutex_unlock(&article->lock);
}

static int sell(struct article *article, int wanted)
{
    int stock = stock_of(article);
    if (stock < wanted)
        return 0;
    set_stock(article, stock - wanted);

    pthread_mutex_lock(&article->lock);
    article->n_sold += wanted;
    pthread_mutex_unlock(&article->lock);
    return 1;
}

static void *customer(void *argument)
{
    int favourite = *(const int *)argument;
    sell(&articles[favourite], 2);
    sell(&articles[1], 3);
    return NULL;
}

int main(void)
{
    pthread_t customers[2];
    static const int favourites[2] = {0, 2};

    for (int i = 0; i < N_ARTICLES; i++) {
        pthread_mutex_init(&articles[i].lock, NULL);
        articles[i].stock = 10;
    }
    for (int i = 0; i < 2; i++)
        pthread_create(&customers[i], NULL, customer, (void *)&favourites[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(customers[i], NULL);

    for (int i = 0; i < N_ARTICLES; i++) {
        printf("article %d: %d sold, %d left\n", i, articles[i].n_sold, articles[i].stock);
        assert(articles[i].stock + articles[i].n_sold == 10);
    }
    return 0;
}
