// About: cnd_wait, cnd_signal, cnd_broadcast, cnd_timedwait, call_once, tss_create, tss_set, tss_get.
// Covers: call_once, cnd_broadcast, cnd_destroy, cnd_signal, cnd_timedwait, cnd_wait
// Outcome: exit 0
#include <assert.h>
#include <threads.h>
#include <time.h>

static mtx_t lock;
static cnd_t changed, arrived;
static once_flag flag = ONCE_FLAG_INIT;
static tss_t key;
static int n_inits, n_arrived, n_destroyed, open;

static void destroy(void *value)
{
    mtx_lock(&lock);
    n_destroyed += *(int *)value;
    mtx_unlock(&lock);
}

static void init(void)
{
    n_inits++;
    assert(tss_create(&key, destroy) == thrd_success);
}

static int wait_for_all(void *argument)
{
    call_once(&flag, init);
    assert(tss_get(key) == NULL);
    assert(tss_set(key, argument) == thrd_success);
    assert(mtx_lock(&lock) == thrd_success);
    n_arrived++;
    assert(cnd_signal(&arrived) == thrd_success);
    while (!open)
        assert(cnd_wait(&changed, &lock) == thrd_success);
    assert(mtx_unlock(&lock) == thrd_success);
    assert(tss_get(key) == argument);
    return 0;
}

int main(void)
{
    int values[3] = { 1, 10, 100 };
    thrd_t threads[3];
    assert(mtx_init(&lock, mtx_timed) == thrd_success);
    assert(cnd_init(&changed) == thrd_success && cnd_init(&arrived) == thrd_success);
    for (int i = 0; i < 3; i++)
        assert(thrd_create(&threads[i], wait_for_all, &values[i]) == thrd_success);
    assert(mtx_lock(&lock) == thrd_success);
    while (n_arrived < 3)
        assert(cnd_wait(&arrived, &lock) == thrd_success);
    struct timespec deadline;
    timespec_get(&deadline, TIME_UTC);
    deadline.tv_sec++;
    while (cnd_timedwait(&arrived, &lock, &deadline) != thrd_timedout) {
    }
    open = 1;
    assert(cnd_broadcast(&changed) == thrd_success);
    assert(mtx_unlock(&lock) == thrd_success);
    for (int i = 0; i < 3; i++)
        assert(thrd_join(threads[i], NULL) == thrd_success);
    assert(n_inits == 1 && n_destroyed == 111);
    tss_delete(key);
    cnd_destroy(&changed);
    return 0;
}
