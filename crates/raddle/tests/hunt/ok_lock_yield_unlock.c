// Nothing is wrong: threads poll a shared state under a lock and yield, some of them while they hold
// it, until the state is theirs.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

enum { STAGES = 4, ROUNDS = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int stage;
static int n_passed;

static bool pass(int mine)
{
    bool is_mine;

    pthread_mutex_lock(&lock);
    is_mine = stage % STAGES == mine;
    sched_yield();
    if (is_mine) {
        stage++;
        n_passed++;
    }
    pthread_mutex_unlock(&lock);
    return is_mine;
}

static void *run(void *argument)
{
    int mine = *(int *)argument;

    for (int i = 0; i < ROUNDS;) {
        if (pass(mine))
            i++;
        else if (mine % 2 == 0)
            sched_yield();
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[STAGES];
    int ids[STAGES];

    for (int i = 0; i < STAGES; i++) {
        ids[i] = i;
        pthread_create(&threads[i], NULL, run, &ids[i]);
    }
    for (;;) {
        bool is_done;
        pthread_mutex_lock(&lock);
        is_done = n_passed == STAGES * ROUNDS;
        sched_yield();
        pthread_mutex_unlock(&lock);
        if (is_done)
            break;
    }
    for (int i = 0; i < STAGES; i++)
        pthread_join(threads[i], NULL);
    assert(stage == STAGES * ROUNDS);
    return 0;
}
