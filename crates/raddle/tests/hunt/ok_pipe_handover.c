// Nothing is wrong: a buffer goes to and fro between two threads, handed over by bytes in two
// pipes; whoever has it uses it without a lock. The end of file hands over the total.
// Hunt: clean
// Predicted: 0

#include <assert.h>
#include <pthread.h>
#include <unistd.h>

#define N_ROUNDS 4

static int full[2], empty[2];
static int buffer, total;

static void *produce(void *argument)
{
    char byte;
    for (int i = 1; i <= N_ROUNDS; i++) {
        assert(read(empty[0], &byte, 1) == 1);
        buffer = i;
        assert(write(full[1], "x", 1) == 1);
    }
    assert(read(empty[0], &byte, 1) == 1);
    total = N_ROUNDS * (N_ROUNDS + 1) / 2;
    assert(close(full[1]) == 0);
    return argument;
}

static void *consume(void *argument)
{
    char byte;
    int sum = 0;
    do {
        sum += buffer;
        buffer = 0;
        assert(write(empty[1], "x", 1) == 1);
    } while (read(full[0], &byte, 1) == 1);
    assert(sum == total);
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    assert(pipe(full) == 0 && pipe(empty) == 0);
    pthread_create(&threads[0], NULL, produce, NULL);
    pthread_create(&threads[1], NULL, consume, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(buffer == 0);
    return 0;
}
