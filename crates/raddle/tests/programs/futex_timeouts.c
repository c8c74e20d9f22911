// About: FUTEX_WAIT with a relative timeout, FUTEX_WAIT_BITSET with an absolute one on either clock,
// ETIMEDOUT, EINVAL, EINTR.
// Covers: clock_gettime, pthread_kill, sigaction, syscall
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_int word, is_over;

static long wait_on_word(int operation, const struct timespec *time)
{
    return syscall(SYS_futex, &word, operation, 0, time, NULL, FUTEX_BITSET_MATCH_ANY);
}

static long long now_ms(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

static void handler(int number)
{
    (void)number;
}

static void *be_interrupted(void *argument)
{
    assert(wait_on_word(FUTEX_WAIT_PRIVATE, NULL) == -1 && errno == EINTR);
    is_over = 1;
    return argument;
}

int main(void)
{
    const struct timespec third = { .tv_nsec = 300000000 }, wrong = { .tv_nsec = 1000000000 };
    long long start = now_ms(CLOCK_MONOTONIC);
    assert(wait_on_word(FUTEX_WAIT_PRIVATE, &third) == -1 && errno == ETIMEDOUT);
    assert(now_ms(CLOCK_MONOTONIC) - start >= 299);
    assert(wait_on_word(FUTEX_WAIT, &wrong) == -1 && errno == EINVAL);

    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec++;
    assert(wait_on_word(FUTEX_WAIT_BITSET_PRIVATE, &deadline) == -1 && errno == ETIMEDOUT);
    assert(now_ms(CLOCK_MONOTONIC) >= deadline.tv_sec * 1000);
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec++;
    assert(wait_on_word(FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, &deadline) == -1 && errno == ETIMEDOUT);
    assert(now_ms(CLOCK_REALTIME) >= deadline.tv_sec * 1000);

    pthread_t thread;
    struct sigaction action = { .sa_handler = handler };
    assert(sigaction(SIGUSR1, &action, NULL) == 0);
    assert(pthread_create(&thread, NULL, be_interrupted, NULL) == 0);
    while (!is_over) {
        assert(pthread_kill(thread, SIGUSR1) == 0);
        usleep(1000);
    }
    assert(pthread_join(thread, NULL) == 0);
    return 0;
}
