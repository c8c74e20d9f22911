// Nothing is wrong: several threads mark sieve cells without a lock, but all of them write the
// same value, and nobody reads before they are joined. The same goes for the flag that says
// that some even number was seen.
// Hunt: clean

#include <assert.h>
#include <pthread.h>

#define N 60

static char composite[N + 1];
static int saw_even;

static void *strike(void *argument)
{
    int prime = *(const int *)argument;
    for (int multiple = 2 * prime; multiple <= N; multiple += prime) {
        composite[multiple] = 1;
        if (multiple % 2 == 0)
            saw_even = 1;
    }
    return NULL;
}

int main(void)
{
    static const int primes[4] = {2, 3, 5, 7};
    pthread_t threads[4];
    int n_primes = 0;

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, strike, (void *)&primes[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    for (int i = 2; i <= N; i++)
        if (!composite[i])
            n_primes++;
    assert(n_primes == 17);
    assert(saw_even);
    return 0;
}
