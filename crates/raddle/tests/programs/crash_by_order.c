// About: a pointer that is checked, cleared by another thread, and then followed.
// Covers: Signal
// Outcome: exit 0 | signal SIGSEGV
// Must: signal SIGSEGV
#include <pthread.h>
#include <stddef.h>

static int config_value = 7;
static int *volatile config = &config_value;
static volatile int seen;

static void *use(void *argument)
{
    for (int i = 0; i < 10; i++)
        if (config != NULL)
            seen = *config;
    return argument;
}

static void *unload(void *argument)
{
    config = NULL;
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, use, NULL);
    pthread_create(&threads[1], NULL, unload, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
