// About: malloc, calloc, realloc, reallocarray, aligned_alloc, posix_memalign, memalign, valloc,
// malloc_usable_size, strdup, asprintf, free, from many threads.
// Covers: aligned_alloc, calloc, free, malloc, memalign, posix_memalign, realloc, reallocarray,
// Covers: strdup, valloc, Alloc, Free
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *work(void *argument)
{
    int me = *(int *)argument;
    for (size_t n = 1; n < 100000; n = n * 5 + me) {
        unsigned char *bytes = malloc(n);
        assert(bytes && malloc_usable_size(bytes) >= n);
        memset(bytes, me, n);
        bytes = realloc(bytes, 2 * n);
        assert(bytes && bytes[0] == me && bytes[n - 1] == me);
        bytes = realloc(bytes, n / 2 + 1);
        assert(bytes && bytes[n / 2] == me);
        free(bytes);

        bytes = calloc(n, 3);
        assert(bytes);
        for (size_t i = 0; i < 3 * n; i += n)
            assert(bytes[i] == 0);
        free(bytes);

        long *longs = reallocarray(NULL, n, sizeof *longs);
        assert(longs);
        longs[n - 1] = me;
        free(longs);
    }
    for (size_t alignment = 16; alignment <= 8192; alignment *= 2) {
        void *block = aligned_alloc(alignment, 4 * alignment), *other = NULL;
        assert(block && (uintptr_t)block % alignment == 0);
        assert(posix_memalign(&other, alignment, 100) == 0 && (uintptr_t)other % alignment == 0);
        free(block);
        block = memalign(alignment, 10);
        assert(block && (uintptr_t)block % alignment == 0);
        free(other);
        free(block);
    }
    char *text = NULL, *copy;
    assert(asprintf(&text, "%d and %s", me, "more") == 10);
    assert((copy = strdup(text)) && strcmp(copy, text) == 0);
    free(text);
    free(copy);
    free(NULL);
    return NULL;
}

int main(void)
{
    int names[4] = { 1, 2, 3, 4 };
    pthread_t threads[4];
    volatile size_t huge = SIZE_MAX / 2;
    void *volatile block = malloc(huge); // Else a compiler may take its success for granted.
    assert(block == NULL && errno == ENOMEM);
    block = calloc(huge, 3);
    assert(block == NULL && reallocarray(NULL, huge, 3) == NULL);
    void *unchanged = names, *page = valloc(1);
    assert(posix_memalign(&unchanged, 3, 8) == EINVAL && unchanged == names);
    assert(page && (uintptr_t)page % 4096 == 0);
    free(page);
    for (int i = 0; i < 4; i++)
        assert(pthread_create(&threads[i], NULL, work, &names[i]) == 0);
    for (int i = 0; i < 4; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    return 0;
}
