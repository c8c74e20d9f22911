// About: loops that look at a clock until a deadline: time has to pass while they do.
// Covers: clock_gettime, gettimeofday
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <sys/time.h>
#include <time.h>

static long long now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000LL + time.tv_nsec / 1000;
}

static void *by_clock_gettime(void *argument)
{
    long long deadline = now_us() + 5000;
    while (now_us() < deadline) {
    }
    return argument;
}

static void *by_gettimeofday(void *argument)
{
    struct timeval start, now;
    gettimeofday(&start, NULL);
    do
        gettimeofday(&now, NULL);
    while ((now.tv_sec - start.tv_sec) * 1000000LL + now.tv_usec - start.tv_usec < 5000);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    long long start = now_us();
    assert(pthread_create(&threads[0], NULL, by_clock_gettime, NULL) == 0);
    assert(pthread_create(&threads[1], NULL, by_gettimeofday, NULL) == 0);
    assert(pthread_join(threads[0], NULL) == 0);
    assert(pthread_join(threads[1], NULL) == 0);
    assert(now_us() - start >= 5000);
    return 0;
}
