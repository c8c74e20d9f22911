// About: two seconds of usleep in place of a wait: right only as long as nobody is slow.
// Covers: usleep
// Outcome: exit 0 | assert
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static int *config;

static void *load(void *argument)
{
    static int loaded;
    for (int i = 0; i < 100; i++)
        loaded += i;
    config = &loaded;
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, load, NULL);
    usleep(2000000);
    assert(config != NULL && *config == 4950);
    pthread_join(thread, NULL);
    return 0;
}
