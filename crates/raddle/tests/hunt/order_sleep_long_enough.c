// What is wrong: main sleeps for 300 ms, which is meant to be long enough for the loader, which
// waits for its disk for 50 ms. On a busy machine the loader is late, and main reads the
// configuration before it is there.
// Hunt: fails
// Kind: order, race, atomicity
// Guilty: 2 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_settings;

static void *load(void *argument)
{
    usleep(50 * 1000);
    pthread_mutex_lock(&lock);
    n_settings = 12; /* guilty */
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_t loader;

    pthread_create(&loader, NULL, load, NULL);
    usleep(300 * 1000);
    pthread_mutex_lock(&lock);
    int n = n_settings; /* guilty */
    pthread_mutex_unlock(&lock);
    assert(n == 12);
    pthread_join(loader, NULL);
    return 0;
}
