// What is wrong: seven philosophers, each with a fork to the left and one to the right. If all take
// the left one first, nobody gets the right one: a circle of seven locks.
// Hunt: fails
// Kind: deadlock
// Guilty: 2 lines
// Shows: deadlock

#include <pthread.h>
#include <stdint.h>

enum { PHILOSOPHERS = 7 };

static pthread_mutex_t forks[PHILOSOPHERS];
static int n_meals[PHILOSOPHERS];

static void *dine(void *argument)
{
    intptr_t left = (intptr_t)argument;
    intptr_t right = (left + 1) % PHILOSOPHERS;

    pthread_mutex_lock(&forks[left]); /* guilty */
    pthread_mutex_lock(&forks[right]); /* guilty */
    n_meals[left]++;
    pthread_mutex_unlock(&forks[right]);
    pthread_mutex_unlock(&forks[left]);
    return NULL;
}

int main(void)
{
    pthread_t threads[PHILOSOPHERS];

    for (int i = 0; i < PHILOSOPHERS; i++)
        pthread_mutex_init(&forks[i], NULL);
    for (intptr_t i = 0; i < PHILOSOPHERS; i++)
        pthread_create(&threads[i], NULL, dine, (void *)i);
    for (int i = 0; i < PHILOSOPHERS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
