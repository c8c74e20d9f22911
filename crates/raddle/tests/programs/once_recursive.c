// About: an initializer that needs its own result.
// Covers: pthread_once
// Outcome: deadlock
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int value;

static void init(void);

static int get(void)
{
    pthread_once(&once, init);
    return value;
}

static void init(void)
{
    value = get() + 1;
}

static void *use(void *argument)
{
    get();
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, use, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
