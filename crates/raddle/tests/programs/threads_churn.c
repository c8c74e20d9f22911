// About: 1000 short threads, a few at a time, each of which starts at the place of an earlier one.
// Covers: Read, AtomicLoad, AtomicUpdate
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int count;

static void *leaf(void *argument)
{
    count++;
    return argument;
}

static void *branch(void *argument)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, leaf, NULL) == 0);
    count++;
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    return argument;
}

int main(void)
{
    for (int i = 0; i < 250; i++) {
        pthread_t thread;
        assert(pthread_create(&thread, NULL, branch, NULL) == 0);
        assert(pthread_join(thread, NULL) == 0);
        assert(count == 4 * (i + 1));
    }
    return 0;
}
