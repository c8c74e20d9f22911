// About: more threads one after another than would fit at a time, as a thread per request makes them.
// Covers: pthread_create, pthread_join, Spawn, Join
// Outcome: exit 0
// Seeds: 1

#include <assert.h>
#include <pthread.h>
#include <stdint.h>

static long n_served;

static void *serve(void *request)
{
    n_served++;
    return request;
}

int main(void)
{
    for (intptr_t request = 0; request < 10000; request++) {
        pthread_t thread;
        void *answer;
        assert(pthread_create(&thread, NULL, serve, (void *)request) == 0);
        assert(pthread_join(thread, &answer) == 0 && (intptr_t)answer == request);
    }
    assert(n_served == 10000);
    return 0;
}
