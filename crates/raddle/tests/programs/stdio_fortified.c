// About: fgets and fread on a pipe as _FORTIFY_SOURCE calls them.
// Covers: __fgets_chk, __fgets_unlocked_chk, __fread_chk, __fread_unlocked_chk
// Outcome: exit 0
// Flags: -O2 -D_FORTIFY_SOURCE=2
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int ends[2];
// Sizes that the compiler does not know, so that the check is left to the call.
static volatile int four = 4;

static void *write_all(void *argument)
{
    static const char *pieces[] = { "ab", "c\nd", "ef\ng", "hij", "kl", "mn" };
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        assert(write(ends[1], pieces[i], strlen(pieces[i])) == (ssize_t)strlen(pieces[i]));
    return argument;
}

int main(void)
{
    pthread_t thread;
    char text[8];
    assert(pipe(ends) == 0);
    FILE *file = fdopen(ends[0], "r");
    assert(file && pthread_create(&thread, NULL, write_all, NULL) == 0);
    assert(fgets(text, four + 1, file) == text && strcmp(text, "abc\n") == 0);
    assert(fgets_unlocked(text, four + 1, file) == text && strcmp(text, "def\n") == 0);
    assert(fread(text, 1, four, file) == 4 && memcmp(text, "ghij", 4) == 0);
    assert(fread_unlocked(text, 1, four, file) == 4 && memcmp(text, "klmn", 4) == 0);
    assert(pthread_join(thread, NULL) == 0);
    return 0;
}
