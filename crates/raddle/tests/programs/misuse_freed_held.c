// About: memory that is freed while a lock in it is held.
// Covers: calloc, free, pthread_mutex_lock, pthread_mutex_unlock, sched_yield
// Outcome: exit 0 | misuse
// Must: misuse
// Free: no, libc has the block back at once, and unlocking in it damages the heap.
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

struct session {
    pthread_mutex_t lock;
    int n_calls;
};

static struct session *session;
static int is_done;

static void *first(void *argument)
{
    struct session *mine = __atomic_load_n(&is_done, __ATOMIC_SEQ_CST) ? NULL : session;
    if (mine == NULL)
        return argument;
    pthread_mutex_lock(&mine->lock);
    __atomic_store_n(&is_done, 1, __ATOMIC_SEQ_CST);
    sched_yield();
    pthread_mutex_unlock(&mine->lock);
    return argument;
}

static void *second(void *argument)
{
    if (__atomic_load_n(&is_done, __ATOMIC_SEQ_CST))
        free(session);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    session = calloc(1, sizeof *session);
    pthread_create(&threads[0], NULL, first, NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
