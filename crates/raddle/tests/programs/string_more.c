// About: more mem*, str*, wcs* and wmem* functions on buffers that threads share under a lock.
// Covers: __mempcpy, __strtok_r, explicit_bzero, memmem, mempcpy, memrchr, rawmemchr, stpncpy, strcasestr,
// Covers: strchrnul, strcspn, strncasecmp, strpbrk, strspn, strtok, strtok_r, wcscat, wcschr, wcscmp, wcscpy,
// Covers: wcslen, wcsncmp, wcsncpy, wcsnlen, wcsrchr, wmemchr, wmemcmp, wmemcpy, wmemmove, wmemset
// Outcome: exit 0
// Flags: -fno-builtin
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

// A name that headers hide.
char *__strtok_r(char *, const char *, char **);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char shared[64];
static wchar_t wide[32];
static int n_rounds;

static void memory(const char *word, size_t n)
{
    assert(mempcpy(shared, word, n + 1) == shared + n + 1 && __mempcpy(shared, word, n) == shared + n);
    assert(memrchr(shared, word[n - 1], n) == shared + n - 1 && rawmemchr(shared, 0) == shared + n);
    assert(memmem(shared, n, word + 1, n - 1) == shared + 1);
    explicit_bzero(shared, n);
    assert(shared[0] == 0);
}

static void text(const char *word, size_t n)
{
    char *rest;
    assert(stpncpy(shared, word, sizeof shared) == shared + n);
    assert(strncasecmp(shared, word, n) == 0 && strcasestr(shared, word + 1) == shared + 1);
    assert(strchrnul(shared, '!') == shared + n && strspn(shared, word) == n && strcspn(shared, "!") == n);
    assert(strpbrk(shared, "!?") == NULL);
    strcpy(shared, ",a;b,c");
    assert(strcmp(strtok_r(shared, ",;", &rest), "a") == 0 && strcmp(__strtok_r(NULL, ",;", &rest), "b") == 0);
    assert(strcmp(strtok_r(NULL, ",;", &rest), "c") == 0 && strtok_r(NULL, ",;", &rest) == NULL);
    strcpy(shared, "x y");
    assert(strcmp(strtok(shared, " "), "x") == 0 && strcmp(strtok(NULL, " "), "y") == 0);
    assert(strtok(NULL, " ") == NULL);
}

static void wide_text(void)
{
    wmemset(wide, L'x', 32);
    assert(wcscpy(wide, L"wide") == wide && wcslen(wide) == 4 && wcsnlen(wide, 2) == 2);
    assert(wcscmp(wcscat(wide, L"r"), L"wider") == 0 && wcsncmp(wide, L"wise", 2) == 0);
    assert(wcschr(wide, L'd') == wide + 2 && wcsrchr(wide, L'r') == wide + 4);
    assert(wmemcpy(wide + 8, wide, 5) == wide + 8 && wmemcmp(wide, wide + 8, 5) == 0);
    assert(wmemmove(wide + 1, wide, 5) == wide + 1 && wmemchr(wide, L'r', 8) == wide + 5);
    assert(wcsncpy(wide, L"ab", 4) == wide && wide[3] == 0);
}

static void *work(void *argument)
{
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&lock);
        memory(argument, strlen(argument));
        text(argument, strlen(argument));
        wide_text();
        n_rounds++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    char words[2][8] = { "warp", "heddle" };
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, work, words[i]) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_rounds == 6);
    return 0;
}
