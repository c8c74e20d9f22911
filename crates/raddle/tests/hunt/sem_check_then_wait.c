// What is wrong: a seat is booked only if the semaphore says that one is free, so that the
// caller is never made to wait. But between asking and taking, another one may take the last
// seat, and the caller waits for a seat that nobody gives back.
// Hunt: fails
// Kind: atomicity, deadlock, failure
// Guilty: 2 lines
// Shows: deadlock

#include <assert.h>
#include <pthread.h>
#include <semaphore.h>

#define N_SEATS 4
#define N_AGENTS 2

static sem_t seats;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_booked, n_refused;

static int book(void)
{
    int n_free;

    sem_getvalue(&seats, &n_free); /* guilty */
    if (n_free == 0) {
        pthread_mutex_lock(&lock);
        n_refused++;
        pthread_mutex_unlock(&lock);
        return 0;
    }
    sem_wait(&seats); /* guilty */
    pthread_mutex_lock(&lock);
    n_booked++;
    pthread_mutex_unlock(&lock);
    return 1;
}

static void *sell(void *argument)
{
    int *n_sold = argument;
    for (int i = 0; i < 3; i++)
        *n_sold += book();
    return NULL;
}

int main(void)
{
    pthread_t agents[N_AGENTS];
    int n_sold[N_AGENTS] = {0, 0};

    sem_init(&seats, 0, N_SEATS);
    for (int i = 0; i < N_AGENTS; i++)
        pthread_create(&agents[i], NULL, sell, &n_sold[i]);
    for (int i = 0; i < N_AGENTS; i++)
        pthread_join(agents[i], NULL);
    assert(n_booked == N_SEATS && n_refused == 2);
    assert(n_sold[0] + n_sold[1] == N_SEATS);
    sem_destroy(&seats);
    return 0;
}
