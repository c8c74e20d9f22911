// About: an assertion that always fails, in a thread, with text buffered on standard output.
// Covers: __assert_fail, Signal
// Outcome: assert
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

static int sum;

static void *check(void *argument)
{
    for (int i = 0; i < 10; i++)
        sum += i;
    assert(sum == 46);
    return argument;
}

int main(void)
{
    pthread_t thread;
    printf("about to fail\n");
    pthread_create(&thread, NULL, check, NULL);
    pthread_join(thread, NULL);
    return 0;
}
