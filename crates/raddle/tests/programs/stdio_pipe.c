// About: fgets, fread, getline, getdelim, fgetc, getc, getchar and their kin on pipes, whose lines arrive in
// pieces: they wait without the turn.
// Covers: fgets, fgets_unlocked, fread, fread_unlocked, fgetc, fgetc_unlocked, getc, getc_unlocked, _IO_getc,
// Covers: __uflow, getchar, getchar_unlocked, getline, getdelim, __getdelim
// Outcome: exit 0
// Flags: -O0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Names that headers hide.
int _IO_getc(FILE *);
int __uflow(FILE *);

static int ends[2];

static void *write_all(void *argument)
{
    static const char *pieces[] = { "one l", "ine\ntwo", "\n", "12345", "67", "890", "long ", "line\na;b",
                                    ";", "xyz", "uvw", "+-", "last" };
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        assert(write(ends[1], pieces[i], strlen(pieces[i])) == (ssize_t)strlen(pieces[i]));
    assert(close(ends[1]) == 0);
    return argument;
}

static void read_lines(FILE *file)
{
    char line[16], *grown = NULL;
    size_t room = 0;
    assert(fgets(line, sizeof line, file) == line && strcmp(line, "one line\n") == 0);
    assert(fgets_unlocked(line, 3, file) == line && strcmp(line, "tw") == 0);
    assert(fgets(line, sizeof line, file) == line && strcmp(line, "o\n") == 0);
    assert(fread(line, 2, 4, file) == 4 && memcmp(line, "12345678", 8) == 0);
    assert(fread_unlocked(line, 1, 2, file) == 2 && memcmp(line, "90", 2) == 0);
    assert(getline(&grown, &room, file) == 10 && strcmp(grown, "long line\n") == 0 && room > 10);
    assert(getdelim(&grown, &room, ';', file) == 2 && strcmp(grown, "a;") == 0);
    assert(__getdelim(&grown, &room, ';', file) == 2 && strcmp(grown, "b;") == 0);
    free(grown);
}

static void read_bytes(FILE *file)
{
    assert(fgetc(file) == 'x' && getc(file) == 'y' && _IO_getc(file) == 'z');
    assert((fgetc_unlocked)(file) == 'u' && (getc_unlocked)(file) == 'v' && __uflow(file) == 'w');
    assert(getchar() == '+' && (getchar_unlocked)() == '-');
    char rest[8];
    assert(fread(rest, 1, sizeof rest, file) == 4 && memcmp(rest, "last", 4) == 0);
    assert(feof(file) && fgets(rest, sizeof rest, file) == NULL && getc(file) == EOF && !ferror(file));
}

int main(void)
{
    pthread_t thread;
    assert(pipe(ends) == 0 && dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
    assert(pthread_create(&thread, NULL, write_all, NULL) == 0);
    read_lines(stdin);
    read_bytes(stdin);
    assert(pthread_join(thread, NULL) == 0);
    return 0;
}
