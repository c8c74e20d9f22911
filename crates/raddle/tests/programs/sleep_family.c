// About: sleep, usleep, nanosleep, clock_nanosleep relative and absolute, thrd_sleep; EINVAL.
// Covers: clock_nanosleep, nanosleep, sleep, thrd_sleep, usleep
// Outcome: exit 0
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static long long now_ns(clockid_t clock)
{
    struct timespec time;
    assert(clock_gettime(clock, &time) == 0);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void *in_many_ways(void *argument)
{
    const struct timespec fifth = { .tv_nsec = 200000000 };
    long long start = now_ns(CLOCK_MONOTONIC);
    assert(sleep(1) == 0);
    assert(now_ns(CLOCK_MONOTONIC) >= (start += 1000000000));
    assert(usleep(200000) == 0);
    assert(now_ns(CLOCK_MONOTONIC) >= (start += 200000000));
    assert(nanosleep(&fifth, NULL) == 0);
    assert(now_ns(CLOCK_MONOTONIC) >= (start += 200000000));
    assert(clock_nanosleep(CLOCK_REALTIME, 0, &fifth, NULL) == 0);
    assert(now_ns(CLOCK_MONOTONIC) >= (start += 200000000));
    assert(thrd_sleep(&fifth, NULL) == 0);
    assert(now_ns(CLOCK_MONOTONIC) >= (start += 200000000));
    return argument;
}

static void *until(void *argument)
{
    const clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_REALTIME };
    for (int i = 0; i < 2; i++) {
        struct timespec deadline;
        assert(clock_gettime(clocks[i], &deadline) == 0);
        deadline.tv_sec++;
        assert(clock_nanosleep(clocks[i], TIMER_ABSTIME, &deadline, NULL) == 0);
        assert(now_ns(clocks[i]) >= deadline.tv_sec * 1000000000LL + deadline.tv_nsec);
        // What is past needs no sleep.
        assert(clock_nanosleep(clocks[i], TIMER_ABSTIME, &deadline, NULL) == 0);
    }
    const struct timespec wrong = { .tv_nsec = 1000000000 };
    assert(clock_nanosleep(CLOCK_MONOTONIC, 0, &wrong, NULL) == EINVAL);
    assert(nanosleep(&wrong, NULL) == -1 && errno == EINVAL);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    long long start = now_ns(CLOCK_MONOTONIC);
    assert(pthread_create(&threads[0], NULL, in_many_ways, NULL) == 0);
    assert(pthread_create(&threads[1], NULL, until, NULL) == 0);
    assert(pthread_join(threads[0], NULL) == 0);
    assert(pthread_join(threads[1], NULL) == 0);
    assert(now_ns(CLOCK_MONOTONIC) - start >= 2000000000);
    return 0;
}
