// About: two threads that count without a lock.
// Covers: __assert_fail, Read, Write, Switch, Step
// Outcome: exit 0 | assert
// Must: assert
#include <assert.h>
#include <pthread.h>

static int count;

static void *work(void *argument)
{
    for (int i = 0; i < 10; i++)
        count++;
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(count == 20);
    return 0;
}
