// About: thrd_create, thrd_join, thrd_detach, thrd_yield, thrd_sleep, mtx_init, mtx_lock,
// mtx_trylock, mtx_timedlock, mtx_unlock.
// Covers: mtx_destroy, mtx_lock, mtx_timedlock, mtx_trylock, mtx_unlock, thrd_create, thrd_detach,
// Covers: thrd_join, thrd_sleep, thrd_yield
// Outcome: exit 0
#include <assert.h>
#include <stdatomic.h>
#include <threads.h>
#include <time.h>

static mtx_t plain, recursive, timed;
static int count;
static atomic_int n_detached;

static int add(void *argument)
{
    for (int i = 0; i < 20; i++) {
        assert(mtx_lock(&plain) == thrd_success);
        count++;
        assert(mtx_unlock(&plain) == thrd_success);
        thrd_yield();
    }
    return *(int *)argument;
}

static int refused(void *argument)
{
    (void)argument;
    assert(mtx_trylock(&recursive) == thrd_busy);
    struct timespec deadline;
    assert(timespec_get(&deadline, TIME_UTC) == TIME_UTC);
    deadline.tv_sec++;
    assert(mtx_timedlock(&timed, &deadline) == thrd_timedout);
    thrd_exit(7);
}

static int detached(void *argument)
{
    (void)argument;
    n_detached++;
    return 0;
}

int main(void)
{
    int numbers[3] = { 11, 12, 13 }, result;
    thrd_t threads[3], thread;
    assert(mtx_init(&plain, mtx_plain) == thrd_success);
    assert(mtx_init(&recursive, mtx_plain | mtx_recursive) == thrd_success);
    assert(mtx_init(&timed, mtx_timed) == thrd_success);
    for (int i = 0; i < 3; i++)
        assert(thrd_create(&threads[i], add, &numbers[i]) == thrd_success);
    for (int i = 0; i < 3; i++)
        assert(thrd_join(threads[i], &result) == thrd_success && result == numbers[i]);
    assert(count == 60);

    assert(mtx_lock(&recursive) == thrd_success && mtx_lock(&recursive) == thrd_success);
    assert(mtx_lock(&timed) == thrd_success);
    assert(thrd_create(&thread, refused, NULL) == thrd_success);
    assert(thrd_join(thread, &result) == thrd_success && result == 7);
    assert(mtx_unlock(&recursive) == thrd_success && mtx_unlock(&recursive) == thrd_success);

    assert(thrd_create(&thread, detached, NULL) == thrd_success);
    assert(thrd_detach(thread) == thrd_success);
    while (n_detached == 0)
        assert(thrd_sleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL) == 0);
    assert(thrd_equal(thrd_current(), thrd_current()));
    mtx_destroy(&plain);
    return 0;
}
