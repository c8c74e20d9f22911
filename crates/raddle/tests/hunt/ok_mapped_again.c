// Nothing is wrong: each thread maps memory, uses it without a lock, and unmaps it. The kernel
// gives the same addresses to one after the other.
// Hunt: clean
// Predicted: 0

#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <sys/mman.h>

#define PAGE 4096
#define N_ROUNDS 3

static void *use(void *argument)
{
    for (int round = 0; round < N_ROUNDS; round++) {
        int *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert(page != MAP_FAILED && page[0] == 0);
        page[0] = round;
        page = mremap(page, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
        assert(page != MAP_FAILED && page[0] == round && page[1024] == 0);
        page[1024] = round + 1;
        assert(page[0] + 1 == page[1024]);
        assert(munmap(page, 2 * PAGE) == 0);
    }
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
