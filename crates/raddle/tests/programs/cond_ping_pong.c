// About: pthread_cond_wait, pthread_cond_signal, with predicates.
// Covers: pthread_cond_signal, pthread_cond_wait
// Outcome: exit 0
//
// The mutex is held again after each wait, and both threads alternate strictly.
#include <assert.h>
#include <errno.h>
#include <pthread.h>

enum { ROUNDS = 30 };

static pthread_mutex_t lock;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn;
static int n_turns;

static void *play(void *argument)
{
    int me = *(int *)argument;
    for (int i = 0; i < ROUNDS; i++) {
        assert(pthread_mutex_lock(&lock) == 0);
        while (turn != me)
            assert(pthread_cond_wait(&changed, &lock) == 0);
        // Only the owner of an error-checking mutex is told this.
        assert(pthread_mutex_lock(&lock) == EDEADLK);
        assert(n_turns++ == 2 * i + me);
        turn = !me;
        assert(pthread_cond_signal(&changed) == 0);
        assert(pthread_mutex_unlock(&lock) == 0);
    }
    return NULL;
}

int main(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&lock, &attributes);
    int names[2] = { 0, 1 };
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, play, &names[i]) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_turns == 2 * ROUNDS);
    return 0;
}
