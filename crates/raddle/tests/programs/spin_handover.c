// About: two threads hand a token over and over again, yielding until it is theirs, through an
// atomic and through plain memory under a mutex. They never block, and they are no livelock: what
// they read changes all the time.
// Covers: sched_yield
// Outcome: exit 0
// Steps: 2000000

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

enum { ROUNDS = 20000 };

static atomic_int atomic_turn;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int plain_turn;

static void *hand_over(void *argument)
{
    int me = argument != NULL;

    for (int round = 0; round < ROUNDS; round++) {
        while (atomic_load(&atomic_turn) != 2 * round + me)
            sched_yield();
        atomic_fetch_add(&atomic_turn, 1);
    }
    for (int round = 0; round < ROUNDS;) {
        pthread_mutex_lock(&mutex);
        if (plain_turn == 2 * round + me) {
            plain_turn++;
            round++;
        }
        pthread_mutex_unlock(&mutex);
        sched_yield();
    }
    return NULL;
}

int main(void)
{
    pthread_t other;

    assert(pthread_create(&other, NULL, hand_over, &mutex) == 0);
    hand_over(NULL);
    assert(pthread_join(other, NULL) == 0);
    assert(atomic_load(&atomic_turn) == 2 * ROUNDS && plain_turn == 2 * ROUNDS);
    return 0;
}
