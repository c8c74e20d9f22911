// About: mem* and str* functions as _FORTIFY_SOURCE calls them, on buffers that threads share under a lock.
// Covers: __explicit_bzero_chk, __memcpy_chk, __memmove_chk, __mempcpy_chk, __memset_chk, __stpcpy_chk,
// Covers: __stpncpy_chk, __strcat_chk, __strcpy_chk, __strncat_chk, __strncpy_chk
// Outcome: exit 0
// Flags: -O2 -D_FORTIFY_SOURCE=2
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char shared[64];
static int n_rounds;

static void memory(const char *word, size_t n)
{
    memset(shared, 'x', n);
    assert(shared[n - 1] == 'x' && mempcpy(shared, word, n) == shared + n);
    memmove(shared + 1, shared, n);
    assert(memcmp(shared + 1, word, n) == 0);
    memcpy(shared, word, n);
    assert(memcmp(shared, word, n) == 0);
    explicit_bzero(shared, n + 1);
    assert(shared[0] == 0 && shared[n] == 0);
}

// Apart, so that the compiler does not know the length.
__attribute__((noipa)) static void append(const char *word)
{
    strcat(shared, word);
}

__attribute__((noipa)) static void text(const char *word, size_t n)
{
    strcpy(shared, word);
    strncat(shared, word, n - 1);
    append(word);
    assert(strlen(shared) == 3 * n - 1);
    assert(stpcpy(shared, word) == shared + n);
    strncpy(shared + 1, word, n);
    assert(shared[0] == word[0] && memcmp(shared + 1, word, n) == 0);
    assert(stpncpy(shared, word, n + 2) == shared + n);
}

static void *work(void *argument)
{
    for (int i = 0; i < 4; i++) {
        pthread_mutex_lock(&lock);
        memory(argument, strlen(argument));
        text(argument, strlen(argument));
        n_rounds++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    char words[3][8] = { "warp", "weft", "heddle" };
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, work, words[i]) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_rounds == 12);
    return 0;
}
