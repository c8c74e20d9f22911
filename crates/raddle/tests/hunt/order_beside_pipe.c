// What is wrong: a worker announces its result through a pipe before it has stored it: the byte orders what came
// before it, and the result comes after.
// Hunt: fails
// Kind: order, race
// Guilty: 2 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static int ends[2];
static int input, result;

static void *work(void *argument)
{
    int square = input * input;
    assert(write(ends[1], "x", 1) == 1);
    result = square; /* guilty */
    return argument;
}

int main(void)
{
    pthread_t thread;
    char byte;

    assert(pipe(ends) == 0);
    input = 3;
    pthread_create(&thread, NULL, work, NULL);
    assert(read(ends[0], &byte, 1) == 1);
    assert(result == 9); /* guilty */
    pthread_join(thread, NULL);
    return 0;
}
