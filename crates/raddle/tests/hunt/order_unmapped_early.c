// What is wrong: a cache is a mapping that the main thread unmaps when it thinks that all is read: it counts the
// reader as done before that has looked at its last entry.
// Hunt: fails
// Kind: order, race
// Guilty: 2 lines
// Shows: signal

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define PAGE 4096

static int *cache;
static atomic_int n_done;
static int sum;

static void *read_all(void *argument)
{
    sum = cache[0] + cache[1];
    atomic_fetch_add(&n_done, 1);
    sum += cache[2]; /* guilty */
    return argument;
}

int main(void)
{
    pthread_t thread;

    cache = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(cache != MAP_FAILED);
    for (int i = 0; i < 3; i++)
        cache[i] = i;
    pthread_create(&thread, NULL, read_all, NULL);
    if (atomic_load(&n_done) == 1)
        munmap(cache, PAGE); /* guilty */
    pthread_join(thread, NULL);
    return 0;
}
