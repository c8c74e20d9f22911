// What is wrong: the ticker of an exchange reads the best price and then the quantity offered at
// it, each under the book's lock, but in two calls. A trade in between changes both, and the
// ticker publishes a pair that never was. Accounts, trades and history around it are in order.
// Hunt: fails
// Kind: multi-variable
// Guilty: 4 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

/* The book of one share: offers, cheapest last; the best one is kept at hand. */

#define N_OFFERS 24

struct offer {
    int price;
    int quantity;
    int seller;
};

static struct book {
    pthread_mutex_t lock;
    struct offer offers[N_OFFERS];
    int n_offers;
    int best_price;
    int best_quantity;
} book = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int quantity_at(int price)
{
    return 3 * price - 250;
}

/* With the book locked. */
static void update_best(struct book *book)
{
    if (book->n_offers == 0)
        return;
    const struct offer *best = &book->offers[book->n_offers - 1];
    book->best_price = best->price; /* guilty */
    book->best_quantity = best->quantity; /* guilty */
}

static void book_add(struct book *book, struct offer offer)
{
    pthread_mutex_lock(&book->lock);
    int i = book->n_offers++;
    while (i > 0 && book->offers[i - 1].price < offer.price) {
        book->offers[i] = book->offers[i - 1];
        i--;
    }
    book->offers[i] = offer;
    update_best(book);
    pthread_mutex_unlock(&book->lock);
}

static int book_take(struct book *book, int limit, struct offer *taken)
{
    int found = 0;

    pthread_mutex_lock(&book->lock);
    if (book->n_offers > 1 && book->offers[book->n_offers - 1].price <= limit) {
        *taken = book->offers[--book->n_offers];
        update_best(book);
        found = 1;
    }
    pthread_mutex_unlock(&book->lock);
    return found;
}

static int best_price(struct book *book)
{
    pthread_mutex_lock(&book->lock);
    int price = book->best_price; /* guilty */
    pthread_mutex_unlock(&book->lock);
    return price;
}

static int best_quantity(struct book *book)
{
    pthread_mutex_lock(&book->lock);
    int quantity = book->best_quantity; /* guilty */
    pthread_mutex_unlock(&book->lock);
    return quantity;
}

/* Accounts: locked in the order of their numbers. */

#define N_ACCOUNTS 4

static struct account {
    pthread_mutex_t lock;
    long cash;
    int shares;
} accounts[N_ACCOUNTS];

static void settle(int buyer, const struct offer *offer)
{
    int low = buyer < offer->seller ? buyer : offer->seller;
    int high = buyer < offer->seller ? offer->seller : buyer;
    long sum = (long)offer->price * offer->quantity;

    pthread_mutex_lock(&accounts[low].lock);
    if (low != high)
        pthread_mutex_lock(&accounts[high].lock);
    accounts[buyer].cash -= sum;
    accounts[buyer].shares += offer->quantity;
    accounts[offer->seller].cash += sum;
    accounts[offer->seller].shares -= offer->quantity;
    if (low != high)
        pthread_mutex_unlock(&accounts[high].lock);
    pthread_mutex_unlock(&accounts[low].lock);
}

/* The history of trades. */

static pthread_mutex_t history_lock = PTHREAD_MUTEX_INITIALIZER;
static int n_trades;
static int last_prices[8];

static void note_trade(int price)
{
    pthread_mutex_lock(&history_lock);
    last_prices[n_trades++ % 8] = price;
    pthread_mutex_unlock(&history_lock);
}

static int average_price(void)
{
    int sum = 0, n = 0;

    pthread_mutex_lock(&history_lock);
    for (int i = 0; i < 8; i++)
        if (last_prices[i] != 0) {
            sum += last_prices[i];
            n++;
        }
    pthread_mutex_unlock(&history_lock);
    return n == 0 ? 0 : sum / n;
}

/* Who does all that. */

static void *buyer(void *argument)
{
    int own = *(const int *)argument;
    struct offer offer;

    for (int i = 0; i < 40; i++) {
        int limit = average_price() + 20;
        if (limit < 100)
            limit = 100;
        /* Mostly buyers look, and only now and then they buy. */
        if (i % 20 == 19 && book_take(&book, limit, &offer)) {
            settle(own, &offer);
            note_trade(offer.price);
        }
    }
    return NULL;
}

static void *seller(void *argument)
{
    int own = *(const int *)argument;

    for (int i = 0; i < 4; i++) {
        int price = 97 + own + i;
        book_add(&book, (struct offer){price, quantity_at(price), own});
        average_price();
    }
    return NULL;
}

static void *ticker(void *argument)
{
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 5; j++)
            average_price();
        int price = best_price(&book);
        int quantity = best_quantity(&book);
        assert(quantity == quantity_at(price));
    }
    return argument;
}

int main(void)
{
    static const int numbers[N_ACCOUNTS] = {0, 1, 2, 3};
    pthread_t threads[4];
    long cash = 0;
    int shares = 0;

    for (int i = 0; i < N_ACCOUNTS; i++) {
        pthread_mutex_init(&accounts[i].lock, NULL);
        accounts[i].cash = 10000;
        accounts[i].shares = 1000;
    }
    for (int i = 0; i < 6; i++)
        book_add(&book, (struct offer){92 + i, quantity_at(92 + i), 3});

    pthread_create(&threads[0], NULL, ticker, NULL);
    pthread_create(&threads[1], NULL, buyer, (void *)&numbers[0]);
    pthread_create(&threads[2], NULL, buyer, (void *)&numbers[1]);
    pthread_create(&threads[3], NULL, seller, (void *)&numbers[2]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);

    for (int i = 0; i < N_ACCOUNTS; i++) {
        cash += accounts[i].cash;
        shares += accounts[i].shares;
    }
    assert(cash == 10000 * N_ACCOUNTS && shares == 1000 * N_ACCOUNTS);
    return 0;
}
