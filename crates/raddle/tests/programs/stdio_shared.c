// About: two threads read lines from one file on a pipe, which arrive in pieces: each gets whole lines. A third
// holds the file's lock while it reads.
// Covers: fgets, flockfile, funlockfile, getc_unlocked
// Outcome: exit 0
// Flags: -O0
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { READERS = 2, LINES = 4 };
static FILE *file;
static int ends[2];

static void *read_lines(void *argument)
{
    char line[32];
    for (int i = 0; i < LINES; i++) {
        assert(fgets(line, sizeof line, file) == line);
        assert(strcmp(line, "a line in pieces\n") == 0);
    }
    return argument;
}

static void *read_bytes(void *argument)
{
    for (int i = 0; i < LINES; i++) {
        char line[32] = "";
        int n = 0;
        flockfile(file);
        do
            line[n++] = (getc_unlocked)(file);
        while (line[n - 1] != '\n');
        funlockfile(file);
        assert(strcmp(line, "a line in pieces\n") == 0);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[READERS + 1];
    assert(pipe(ends) == 0 && (file = fdopen(ends[0], "r")) != NULL);
    for (int i = 0; i < READERS; i++)
        assert(pthread_create(&threads[i], NULL, read_lines, NULL) == 0);
    assert(pthread_create(&threads[READERS], NULL, read_bytes, NULL) == 0);
    for (int i = 0; i < (READERS + 1) * LINES; i++) {
        assert(write(ends[1], "a line ", 7) == 7);
        assert(write(ends[1], "in pieces\n", 10) == 10);
    }
    for (int i = 0; i <= READERS; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    return 0;
}
