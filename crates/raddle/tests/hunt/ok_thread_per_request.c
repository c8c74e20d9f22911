// Nothing is wrong: a thread per request, 3,000 requests, at most eight at a time; threads are
// detached, and a counter under a lock says when the last one is done.
// Hunt: clean
// Runs: 60

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS = 3000, ACTIVE_MAX = 8 };

struct request {
    int number;
    char text[16];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t fewer = PTHREAD_COND_INITIALIZER;
static int n_active, n_most;
static long sum;

static void *handle(void *argument)
{
    struct request *request = argument;
    int number = request->number;

    memset(request->text, 'x', sizeof request->text);
    free(request);
    pthread_mutex_lock(&lock);
    sum += number;
    n_active--;
    pthread_cond_signal(&fewer);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_attr_t attributes;

    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    for (int i = 1; i <= REQUESTS; i++) {
        struct request *request = malloc(sizeof *request);
        pthread_t thread;

        request->number = i;
        pthread_mutex_lock(&lock);
        while (n_active == ACTIVE_MAX)
            pthread_cond_wait(&fewer, &lock);
        n_active++;
        if (n_active > n_most)
            n_most = n_active;
        pthread_mutex_unlock(&lock);
        assert(pthread_create(&thread, &attributes, handle, request) == 0);
    }
    pthread_mutex_lock(&lock);
    while (n_active > 0)
        pthread_cond_wait(&fewer, &lock);
    assert(sum == REQUESTS * (REQUESTS + 1L) / 2);
    assert(n_most <= ACTIVE_MAX);
    pthread_mutex_unlock(&lock);
    pthread_attr_destroy(&attributes);
    return 0;
}
