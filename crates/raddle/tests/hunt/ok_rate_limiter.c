// Nothing is wrong: a token bucket lets ten requests pass per second and three in a burst. Whoever
// finds it empty sleeps until the next token is due.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

enum { CLIENTS = 3, REQUESTS = 4, BURST = 3 };

static const int64_t TOKEN_NS = 100 * 1000 * 1000;

struct bucket {
    pthread_mutex_t lock;
    int64_t filled_ns; // the time up to which tokens have been added
    int n_tokens;
};

static struct bucket bucket = { .lock = PTHREAD_MUTEX_INITIALIZER, .n_tokens = BURST };
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t passed_ns[CLIENTS * REQUESTS];
static int n_passed;

static int64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void sleep_ns(int64_t ns)
{
    struct timespec time = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
    while (nanosleep(&time, &time) != 0)
        ;
}

// Takes a token, or tells how long to wait for one.
static int64_t take(struct bucket *bucket)
{
    int64_t wait_ns = 0;

    pthread_mutex_lock(&bucket->lock);
    int64_t now = now_ns();
    while (bucket->n_tokens < BURST && bucket->filled_ns + TOKEN_NS <= now) {
        bucket->filled_ns += TOKEN_NS;
        bucket->n_tokens++;
    }
    if (bucket->n_tokens == BURST)
        bucket->filled_ns = now;
    if (bucket->n_tokens > 0)
        bucket->n_tokens--;
    else
        wait_ns = bucket->filled_ns + TOKEN_NS - now;
    pthread_mutex_unlock(&bucket->lock);
    return wait_ns;
}

static void *client(void *argument)
{
    for (int i = 0; i < REQUESTS; i++) {
        for (int64_t wait_ns; (wait_ns = take(&bucket)) > 0;)
            sleep_ns(wait_ns);
        pthread_mutex_lock(&log_lock);
        passed_ns[n_passed++] = now_ns();
        pthread_mutex_unlock(&log_lock);
    }
    return argument;
}

int main(void)
{
    pthread_t clients[CLIENTS];
    int64_t start = now_ns();

    bucket.filled_ns = start;
    for (int i = 0; i < CLIENTS; i++)
        pthread_create(&clients[i], NULL, client, NULL);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients[i], NULL);
    assert(n_passed == CLIENTS * REQUESTS);
    // No request passed before its token was there.
    for (int i = BURST; i < n_passed; i++)
        assert(passed_ns[i] - start >= (i + 1 - BURST) * TOKEN_NS);
    return 0;
}
