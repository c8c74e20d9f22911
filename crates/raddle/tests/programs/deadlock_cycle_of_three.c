// About: a cycle of three threads and three locks (dining philosophers).
// Covers: pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock
// Outcome: exit 0 | deadlock
// Must: deadlock
#include <assert.h>
#include <pthread.h>

enum { SEATS = 3, MEALS = 4 };

static pthread_mutex_t forks[SEATS];
static int meals[SEATS];

static void *dine(void *argument)
{
    int *seat = argument;
    int i = seat - meals;
    for (int meal = 0; meal < MEALS; meal++) {
        pthread_mutex_lock(&forks[i]);
        pthread_mutex_lock(&forks[(i + 1) % SEATS]);
        meals[i]++;
        pthread_mutex_unlock(&forks[(i + 1) % SEATS]);
        pthread_mutex_unlock(&forks[i]);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[SEATS];
    for (int i = 0; i < SEATS; i++)
        pthread_mutex_init(&forks[i], NULL);
    for (int i = 0; i < SEATS; i++)
        pthread_create(&threads[i], NULL, dine, &meals[i]);
    for (int i = 0; i < SEATS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < SEATS; i++)
        assert(meals[i] == MEALS);
    return 0;
}
