// About: mem* and str* functions on buffers that threads share under a lock.
// Covers: bcmp, bzero, memchr, memcmp, stpcpy, strcasecmp, strcat, strchr, strcpy, strncat,
// Covers: strncmp, strncpy, strndup, strnlen, strrchr, strstr
// Outcome: exit 0
// Flags: -fno-builtin
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char shared[256];
static int n_rounds;

static void memory(const char *word)
{
    size_t n = strlen(word);
    memset(shared, 0, sizeof shared);
    memcpy(shared, word, n);
    assert(memcmp(shared, word, n) == 0 && bcmp(shared, word, n) == 0);
    assert(memchr(shared, word[n - 1], n) != NULL && memrchr(shared, word[0], n) == shared);
    assert((char *)mempcpy(shared + n, word, n) == shared + 2 * n);
    assert(memmem(shared, 2 * n, word, n) == shared);
    memmove(shared + 1, shared, 2 * n);
    assert(memcmp(shared + 1, word, n) == 0 && shared[0] == word[0]);
    bzero(shared, sizeof shared);
    assert(shared[0] == 0);
}

static void text(const char *word)
{
    size_t n = strlen(word);
    strcpy(shared, word);
    assert(strcmp(shared, word) == 0 && strncmp(shared, word, n) == 0);
    strcat(shared, " ");
    strncat(shared, "and then some", 3);
    assert(strlen(shared) == n + 4 && strnlen(shared, 3) == 3);
    assert(strchr(shared, ' ') == shared + n && strrchr(shared, 'd') == shared + n + 3);
    assert(strstr(shared, "and") == shared + n + 1 && strcasestr(shared, "AND") != NULL);
    assert(strspn(shared, word) == n && strcspn(shared, " ") == n);
    assert(strcasecmp(shared, word) > 0 && strncasecmp(shared, word, n) == 0);
    assert(stpcpy(shared, word) == shared + n && strncpy(shared + 100, word, 50) == shared + 100);
    char *rest, *copy = strndup(shared, 2), first[8] = "a,b";
    assert(copy && strlen(copy) == 2);
    free(copy);
    assert(strcmp(strtok_r(first, ",", &rest), "a") == 0 && strcmp(rest, "b") == 0);
    wchar_t wide[8];
    assert(wcslen(wcscpy(wide, L"wide")) == 4 && strtol("  -42x", &rest, 10) == -42 && *rest == 'x');
}

static void *work(void *argument)
{
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&lock);
        memory(argument);
        text(argument);
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
    assert(n_rounds == 15);
    return 0;
}
