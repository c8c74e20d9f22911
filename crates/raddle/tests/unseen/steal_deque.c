/*
 * Component: work-stealing scheduler. The owner pushes and pops tasks at the
 * bottom of its deque, two thieves steal from the top (Chase-Lev style, all
 * operations sequentially consistent atomics).
 *
 * Bug (atomicity violation): when the owner pops the last task it must win it
 * against the thieves with a compare-and-swap on `top`. Here it reads `top`,
 * sees that one task is left, and simply stores top+1. A thief that has seen the
 * task before the pop and whose CAS on `top` falls between the owner's read and
 * store takes the same task: it is executed twice.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define TASKS 18
#define BATCH 3
#define RING 32
#define THIEVES 2
#define ATTEMPTS 8
#define NONE (-1)

struct deque {
    atomic_long top;
    atomic_long bottom;
    atomic_int slot[RING];
};

static struct deque dq;
static atomic_int executed[TASKS];
static atomic_int stolen;
static atomic_int popped;
static pthread_mutex_t result_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long result_sum;

static void deque_push(struct deque *d, int task)
{
    long b = atomic_load(&d->bottom);
    atomic_store(&d->slot[b % RING], task);
    atomic_store(&d->bottom, b + 1);
}

static int deque_pop(struct deque *d)
{
    long b = atomic_load(&d->bottom) - 1;
    atomic_store(&d->bottom, b);
    long t = atomic_load(&d->top); /* guilty */
    if (t > b) {
        atomic_store(&d->bottom, b + 1);
        return NONE;
    }
    int task = atomic_load(&d->slot[b % RING]);
    if (t < b)
        return task;
    atomic_store(&d->top, t + 1); /* guilty */
    atomic_store(&d->bottom, b + 1);
    return task;
}

static int deque_steal(struct deque *d)
{
    long t = atomic_load(&d->top);
    long b = atomic_load(&d->bottom);
    if (t >= b)
        return NONE;
    int task = atomic_load(&d->slot[t % RING]);
    if (!atomic_compare_exchange_strong(&d->top, &t, t + 1)) /* guilty */
        return NONE;
    return task;
}

static void run_task(int task)
{
    unsigned long a = 1;
    for (int i = 0; i < 20 + task; i++)
        a = a * 6364136223846793005ul + 1442695040888963407ul;
    atomic_fetch_add(&executed[task], 1);
    pthread_mutex_lock(&result_lock);
    result_sum += a >> 40;
    pthread_mutex_unlock(&result_lock);
}

static void *owner_main(void *arg)
{
    int next = 0;
    (void)arg;
    while (next < TASKS) {
        for (int i = 0; i < BATCH; i++)
            deque_push(&dq, next++);
        for (;;) {
            int task = deque_pop(&dq);
            if (task == NONE)
                break;
            run_task(task);
            atomic_fetch_add(&popped, 1);
        }
    }
    return NULL;
}

static void *thief_main(void *arg)
{
    (void)arg;
    for (int i = 0; i < ATTEMPTS; i++) {
        int task = deque_steal(&dq);
        if (task == NONE)
            continue;
        run_task(task);
        atomic_fetch_add(&stolen, 1);
    }
    return NULL;
}

int main(void)
{
    pthread_t owner;
    pthread_t thief[THIEVES];

    for (int i = 0; i < THIEVES; i++)
        pthread_create(&thief[i], NULL, thief_main, NULL);
    pthread_create(&owner, NULL, owner_main, NULL);
    pthread_join(owner, NULL);
    for (int i = 0; i < THIEVES; i++)
        pthread_join(thief[i], NULL);

    printf("popped %d stolen %d sum %lu\n", atomic_load(&popped), atomic_load(&stolen), result_sum);
    for (int i = 0; i < TASKS; i++)
        assert(atomic_load(&executed[i]) == 1);
    return 0;
}
