// About: a lock of one's own, created as one that its holder cannot acquire again, and acquired again.
// Covers: __tsan_mutex_create, __tsan_mutex_post_lock, __tsan_mutex_pre_lock
// Outcome: misuse
// Free: nobody checks
#include <stddef.h>

// Weak, so that the program links without instrumentation as well.
__attribute__((weak)) void __tsan_mutex_create(void *, unsigned);
__attribute__((weak)) void __tsan_mutex_pre_lock(void *, unsigned);
__attribute__((weak)) void __tsan_mutex_post_lock(void *, unsigned, int);

static int word;

int main(void)
{
    if (__tsan_mutex_create == NULL)
        return 0;
    __tsan_mutex_create(&word, 0);
    for (int i = 0; i < 2; i++) {
        __tsan_mutex_pre_lock(&word, 0);
        word++;
        __tsan_mutex_post_lock(&word, 0, 0);
    }
    return 0;
}
