// About: pthread_mutex_lock, pthread_mutex_unlock, static and dynamic initialization.
// Covers: pthread_mutex_lock, pthread_mutex_unlock
// Outcome: exit 0
//
// Two counters behind two locks, one of which guards a heap object. Inside a critical
// section nobody else may be.
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 50 };

static pthread_mutex_t global_lock = PTHREAD_MUTEX_INITIALIZER;
static int global_count;
static int inside;

struct account {
    pthread_mutex_t lock;
    int balance;
};

static void *work(void *argument)
{
    struct account *account = argument;
    for (int i = 0; i < ROUNDS; i++) {
        assert(pthread_mutex_lock(&global_lock) == 0);
        assert(inside++ == 0);
        global_count++;
        assert(--inside == 0);
        assert(pthread_mutex_unlock(&global_lock) == 0);

        assert(pthread_mutex_lock(&account->lock) == 0);
        account->balance += i;
        assert(pthread_mutex_unlock(&account->lock) == 0);
    }
    return NULL;
}

int main(void)
{
    struct account *account = calloc(1, sizeof *account);
    assert(account && pthread_mutex_init(&account->lock, NULL) == 0);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert(pthread_create(&threads[i], NULL, work, account) == 0);
    for (int i = 0; i < THREADS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(global_count == THREADS * ROUNDS);
    assert(account->balance == THREADS * ROUNDS * (ROUNDS - 1) / 2);
    assert(pthread_mutex_destroy(&account->lock) == 0);
    assert(pthread_mutex_destroy(&global_lock) == 0);
    free(account);
    return 0;
}
