// About: mmap, munmap, mremap: in place, moved, and to a fixed address; errors; memory that another thread
// unmaps and maps again.
// Covers: mmap, mmap64, mremap, munmap, Map, Unmap
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

enum { PAGE = 4096, FLAGS = MAP_PRIVATE | MAP_ANONYMOUS, BOTH = PROT_READ | PROT_WRITE };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *page;

static void *renew(void *argument)
{
    for (int i = 0; i < 5; i++) {
        assert(pthread_mutex_lock(&lock) == 0);
        page[7]++;
        char before = page[7];
        assert(munmap(page, PAGE) == 0);
        page = mmap64(NULL, PAGE, BOTH, FLAGS, -1, 0);
        assert(page != MAP_FAILED && page[7] == 0);
        page[7] = before;
        assert(pthread_mutex_unlock(&lock) == 0);
    }
    return argument;
}

int main(void)
{
    char *memory = mmap(NULL, 4 * PAGE, BOTH, FLAGS, -1, 0);
    assert(memory != MAP_FAILED && memory[0] == 0);
    memory[0] = 1;
    memory[PAGE] = 2;
    assert(mremap(memory, 4 * PAGE, 2 * PAGE, 0) == memory && memory[PAGE] == 2);
    char *moved = mremap(memory, 2 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
    assert(moved != MAP_FAILED && moved[0] == 1 && moved[PAGE] == 2 && moved[63 * PAGE] == 0);
    char *wanted = mmap(NULL, 2 * PAGE, PROT_NONE, FLAGS, -1, 0);
    assert(mremap(moved, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, wanted) == wanted && wanted[0] == 1);
    assert(mmap(wanted, PAGE, BOTH, FLAGS | MAP_FIXED, -1, 0) == wanted && wanted[0] == 0);

    assert(mmap(NULL, 0, BOTH, FLAGS, -1, 0) == MAP_FAILED && errno == EINVAL);
    assert(mmap(NULL, PAGE, BOTH, MAP_PRIVATE, -1, 0) == MAP_FAILED && errno == EBADF);
    assert(munmap(wanted + 1, PAGE) == -1 && errno == EINVAL && wanted[0] == 0);
    assert(mremap(wanted + 1, PAGE, PAGE, 0) == MAP_FAILED && errno == EINVAL);
    // More than there is memory.
    void *reserved = mmap(NULL, 1UL << 40, PROT_NONE, FLAGS | MAP_NORESERVE, -1, 0);
    assert(reserved == MAP_FAILED || munmap(reserved, 1UL << 40) == 0);

    pthread_t threads[2];
    page = mmap(NULL, PAGE, BOTH, FLAGS, -1, 0);
    assert(page != MAP_FAILED);
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, renew, NULL) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(page[7] == 10 && munmap(page, PAGE) == 0 && munmap(wanted, 2 * PAGE) == 0);
    return 0;
}
