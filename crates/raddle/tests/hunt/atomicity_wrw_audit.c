// What is wrong: to change a loan, the clerk takes the old amount off the total and adds the
// new one, in two steps under the lock. An auditor who reads the total in between (W-R-W) sees
// a sum that was never right.
// Hunt: fails
// Kind: atomicity
// Guilty: 3 lines
// Shows: exit

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define N_LOANS 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int loans[N_LOANS] = {100, 200, 300, 400};
static int total = 1000;
static int n_audits;

static void subtract(int amount)
{
    pthread_mutex_lock(&lock);
    total -= amount; /* guilty */
    pthread_mutex_unlock(&lock);
}

static void add(int amount)
{
    pthread_mutex_lock(&lock);
    total += amount; /* guilty */
    pthread_mutex_unlock(&lock);
}

static void *clerk(void *argument)
{
    /* Interest moves from one loan to the other: the total stays. */
    for (int i = 0; i + 1 < N_LOANS; i += 2) {
        subtract(loans[i] + loans[i + 1]);
        loans[i] -= 10;
        loans[i + 1] += 10;
        add(loans[i] + loans[i + 1]);
    }
    return argument;
}

static void *audit(void *argument)
{
    pthread_mutex_lock(&lock);
    int seen = total; /* guilty */
    n_audits++;
    pthread_mutex_unlock(&lock);
    if (seen != 1000) {
        fprintf(stderr, "the books say %d\n", seen);
        exit(4);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[3];

    pthread_create(&threads[0], NULL, clerk, NULL);
    pthread_create(&threads[1], NULL, audit, NULL);
    pthread_create(&threads[2], NULL, audit, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return total == 1000 && n_audits == 2 ? 0 : 1;
}
