// About: the interface that all sanitizers share: unaligned loads and stores, a stack trace, questions about
// the heap, settings without effect, and ThreadSanitizer's names for the functions that it intercepts.
// Covers: __sanitizer_acquire_crash_state, __sanitizer_get_allocated_size, __sanitizer_get_current_allocated_bytes,
// Covers: __sanitizer_get_estimated_allocated_size, __sanitizer_get_free_bytes, __sanitizer_get_heap_size,
// Covers: __sanitizer_get_module_and_offset_for_pc, __sanitizer_get_ownership, __sanitizer_get_report_path,
// Covers: __sanitizer_get_unmapped_bytes, __sanitizer_install_malloc_and_free_hooks,
// Covers: __sanitizer_print_stack_trace, __sanitizer_report_error_summary, __sanitizer_sandbox_on_notify,
// Covers: __sanitizer_set_death_callback, __sanitizer_set_report_fd, __sanitizer_set_report_path,
// Covers: __sanitizer_symbolize_global, __sanitizer_symbolize_pc, __sanitizer_unaligned_load16,
// Covers: __sanitizer_unaligned_load32, __sanitizer_unaligned_load64, __sanitizer_unaligned_store16,
// Covers: __sanitizer_unaligned_store32, __sanitizer_unaligned_store64, __interceptor_aligned_alloc,
// Covers: __interceptor_calloc, __interceptor_free, __interceptor_malloc, __interceptor_memalign,
// Covers: __interceptor_memcmp, __interceptor_memcpy, __interceptor_memmove, __interceptor_memset,
// Covers: __interceptor_posix_memalign, __interceptor_pthread_create, __interceptor_pthread_detach,
// Covers: __interceptor_pthread_join, __interceptor_pthread_mutex_lock, __interceptor_pthread_mutex_trylock,
// Covers: __interceptor_pthread_mutex_unlock, __interceptor_read, __interceptor_realloc, __interceptor_strcmp,
// Covers: __interceptor_strlen, __interceptor_valloc, __interceptor_write
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Weak, so that the program links without instrumentation as well.
#define WEAK __attribute__((weak))
WEAK uint16_t __sanitizer_unaligned_load16(const void *);
WEAK uint32_t __sanitizer_unaligned_load32(const void *);
WEAK uint64_t __sanitizer_unaligned_load64(const void *);
WEAK void __sanitizer_unaligned_store16(void *, uint16_t);
WEAK void __sanitizer_unaligned_store32(void *, uint32_t);
WEAK void __sanitizer_unaligned_store64(void *, uint64_t);
WEAK void __sanitizer_print_stack_trace(void);
WEAK void __sanitizer_set_death_callback(void (*)(void));
WEAK void __sanitizer_set_report_path(const char *);
WEAK void __sanitizer_set_report_fd(void *);
WEAK const char *__sanitizer_get_report_path(void);
WEAK void __sanitizer_report_error_summary(const char *);
WEAK void __sanitizer_sandbox_on_notify(void *);
WEAK int __sanitizer_acquire_crash_state(void);
WEAK void __sanitizer_symbolize_pc(void *, const char *, char *, size_t);
WEAK void __sanitizer_symbolize_global(void *, const char *, char *, size_t);
WEAK int __sanitizer_get_module_and_offset_for_pc(void *, char *, size_t, void **);
WEAK size_t __sanitizer_get_estimated_allocated_size(size_t);
WEAK size_t __sanitizer_get_allocated_size(const volatile void *);
WEAK int __sanitizer_get_ownership(const volatile void *);
WEAK size_t __sanitizer_get_current_allocated_bytes(void);
WEAK size_t __sanitizer_get_heap_size(void);
WEAK size_t __sanitizer_get_free_bytes(void);
WEAK size_t __sanitizer_get_unmapped_bytes(void);
WEAK int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void *, size_t), void (*)(const volatile void *));
WEAK void *__interceptor_malloc(size_t);
WEAK void *__interceptor_calloc(size_t, size_t);
WEAK void *__interceptor_realloc(void *, size_t);
WEAK void __interceptor_free(void *);
WEAK void *__interceptor_aligned_alloc(size_t, size_t);
WEAK void *__interceptor_memalign(size_t, size_t);
WEAK int __interceptor_posix_memalign(void **, size_t, size_t);
WEAK void *__interceptor_valloc(size_t);
WEAK void *__interceptor_memcpy(void *, const void *, size_t);
WEAK void *__interceptor_memmove(void *, const void *, size_t);
WEAK void *__interceptor_memset(void *, int, size_t);
WEAK int __interceptor_memcmp(const void *, const void *, size_t);
WEAK size_t __interceptor_strlen(const char *);
WEAK int __interceptor_strcmp(const char *, const char *);
WEAK int __interceptor_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
WEAK int __interceptor_pthread_join(pthread_t, void **);
WEAK int __interceptor_pthread_detach(pthread_t);
WEAK int __interceptor_pthread_mutex_lock(pthread_mutex_t *);
WEAK int __interceptor_pthread_mutex_trylock(pthread_mutex_t *);
WEAK int __interceptor_pthread_mutex_unlock(pthread_mutex_t *);
WEAK ssize_t __interceptor_read(int, void *, size_t);
WEAK ssize_t __interceptor_write(int, const void *, size_t);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char bytes[16];
static int ends[2];

static void unaligned(void)
{
    char *at = bytes + 1;
    __sanitizer_unaligned_store16(at, 0x1234);
    assert(__sanitizer_unaligned_load16(at) == 0x1234);
    __sanitizer_unaligned_store32(at, 0x12345678);
    assert(__sanitizer_unaligned_load32(at) == 0x12345678);
    __sanitizer_unaligned_store64(at, 0x123456789abcdef0);
    assert(__sanitizer_unaligned_load64(at) == 0x123456789abcdef0 && bytes[9] == 0);
}

static void heap(void)
{
    char *block = __interceptor_malloc(10), *other = __interceptor_calloc(2, 5);
    assert(block && other && __sanitizer_get_ownership(block));
    assert(__sanitizer_get_estimated_allocated_size(10) >= 10 && __sanitizer_get_allocated_size(block) >= 10);
    __interceptor_memset(block, 'a', 9);
    block[9] = 0;
    __interceptor_memcpy(other, block, 10);
    __interceptor_memmove(other + 1, other, 8);
    assert(__interceptor_memcmp(block, other, 9) == 0 && __interceptor_strcmp(block, other) == 0);
    assert((block = __interceptor_realloc(block, 100)) && __interceptor_strlen(block) == 9);
    __interceptor_free(block);
    __interceptor_free(other);
    void *aligned[4] = { __interceptor_aligned_alloc(64, 64), __interceptor_memalign(64, 64), __interceptor_valloc(64) };
    assert(__interceptor_posix_memalign(&aligned[3], 64, 64) == 0);
    for (int i = 0; i < 4; i++) {
        assert(aligned[i] && (uintptr_t)aligned[i] % 64 == 0);
        __interceptor_free(aligned[i]);
    }
}

static void *work(void *argument)
{
    char byte;
    assert(__interceptor_read(ends[0], &byte, 1) == 1);
    if (__interceptor_pthread_mutex_trylock(&lock) != 0)
        assert(__interceptor_pthread_mutex_lock(&lock) == 0);
    unaligned();
    heap();
    assert(__interceptor_pthread_mutex_unlock(&lock) == 0);
    return argument;
}

static void *nothing(void *argument)
{
    return argument;
}

static void settings(void)
{
    char text[8] = "text", *end;
    __sanitizer_set_death_callback(NULL);
    __sanitizer_set_report_path("stderr");
    __sanitizer_set_report_fd((void *)2);
    assert(__sanitizer_get_report_path() != NULL);
    __sanitizer_report_error_summary("none");
    __sanitizer_sandbox_on_notify(NULL);
    assert(__sanitizer_acquire_crash_state() == 1 && __sanitizer_acquire_crash_state() == 0);
    __sanitizer_symbolize_pc((void *)settings, "%f", text, sizeof text);
    __sanitizer_symbolize_global(bytes, "%g", text, sizeof text);
    __sanitizer_get_module_and_offset_for_pc((void *)settings, text, sizeof text, (void **)&end);
    __sanitizer_install_malloc_and_free_hooks(NULL, NULL);
    __sanitizer_get_current_allocated_bytes();
    __sanitizer_get_heap_size();
    __sanitizer_get_free_bytes();
    __sanitizer_get_unmapped_bytes();
}

int main(void)
{
    if (!__sanitizer_unaligned_load16 || !__interceptor_malloc)
        return 0;
    pthread_t threads[3];
    assert(pipe(ends) == 0);
    settings();
    for (int i = 0; i < 2; i++)
        assert(__interceptor_pthread_create(&threads[i], NULL, work, NULL) == 0);
    assert(__interceptor_write(ends[1], "ab", 2) == 2);
    assert(__interceptor_pthread_create(&threads[2], NULL, nothing, NULL) == 0);
    assert(__interceptor_pthread_detach(threads[2]) == 0);
    for (int i = 0; i < 2; i++)
        assert(__interceptor_pthread_join(threads[i], NULL) == 0);
    __sanitizer_print_stack_trace();
    return 0;
}
