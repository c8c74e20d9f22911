// Reads memory after it was freed, in every run; and two withdrawals may get in each other's way.
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static volatile int *settings;
static int balance = 100;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int limit(void) {
    return settings[0];
}

static void count_use(void) {
    settings[1]++;
}

static void *withdraw(void *sum) {
    pthread_mutex_lock(&lock);
    int before = balance;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    balance = before - *(int *)sum;
    pthread_mutex_unlock(&lock);
    return 0;
}

int main(int argc, char **argv) {
    (void)argv;
    int sums[2] = {30, 50};
    settings = malloc(2 * sizeof *settings);
    settings[0] = 7;
    settings[1] = 0;
    free((void *)settings);
    if (limit() != 7) {
        return 3;
    }
    if (argc > 1) {
        count_use();
    }
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        pthread_create(&threads[i], 0, withdraw, &sums[i]);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], 0);
    }
    assert(balance == 20);
    return 0;
}
