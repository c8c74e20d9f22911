// About: time, gettimeofday, clock_gettime, timespec_get, clock_getres: no clock runs backwards,
// also between threads, and those of the day agree.
// Covers: clock_gettime, gettimeofday, time, timespec_get
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long long latest[3];

static long long now_ns(clockid_t clock)
{
    struct timespec time;
    assert(clock_gettime(clock, &time) == 0);
    assert(time.tv_nsec >= 0 && time.tv_nsec < 1000000000);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void *look(void *argument)
{
    const clockid_t clocks[3] = { CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_BOOTTIME };
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        for (int c = 0; c < 3; c++) {
            long long now = now_ns(clocks[c]);
            assert(now >= latest[c]);
            latest[c] = now;
        }
        pthread_mutex_unlock(&lock);
        if (i % 5 == 0)
            usleep(1000);

        struct timeval day;
        struct timespec standard;
        long long before = now_ns(CLOCK_REALTIME);
        assert(gettimeofday(&day, NULL) == 0);
        assert(timespec_get(&standard, TIME_UTC) == TIME_UTC);
        long long after = now_ns(CLOCK_REALTIME);
        long long day_us = day.tv_sec * 1000000LL + day.tv_usec;
        assert(day_us >= before / 1000 && day_us <= after / 1000);
        assert(standard.tv_sec >= before / 1000000000 && standard.tv_sec <= after / 1000000000);
        // `time` may lag behind by a tick of the kernel's coarse clock.
        time_t seconds = time(NULL);
        assert(seconds >= before / 1000000000 - 1);
        assert(seconds <= now_ns(CLOCK_REALTIME) / 1000000000);
    }
    return argument;
}

int main(void)
{
    struct timespec resolution;
    assert(clock_getres(CLOCK_MONOTONIC, &resolution) == 0 && resolution.tv_sec == 0);
    assert(time(NULL) > 1600000000);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, look, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
