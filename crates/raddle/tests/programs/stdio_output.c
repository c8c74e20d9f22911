// About: fprintf, vfprintf, fflush, fclose and their kin into a pipe, which another thread reads by fgets; numbers
// in vector registers arrive, and so does the end of file.
// Covers: fclose, fflush, fprintf, vfprintf, __fprintf_chk, __vfprintf_chk, Send, Receive
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// What -D_FORTIFY_SOURCE makes of them.
int __fprintf_chk(FILE *, int, const char *, ...);
int __vfprintf_chk(FILE *, int, const char *, va_list);

static int ends[2];
static int n_written;

static void print(FILE *file, int checked, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    assert((checked ? __vfprintf_chk(file, 1, format, list) : vfprintf(file, format, list)) > 0);
    va_end(list);
}

static void *print_all(void *argument)
{
    FILE *file = fdopen(ends[1], "w");
    assert(file != NULL);
    n_written = 1;
    assert(fprintf(file, "%d %s %.2f %.1f %d %d %d\n", 1, "two", 3.25, 4.5, 5, 6, 7) == 21);
    assert(fflush(file) == 0);
    assert(__fprintf_chk(file, 1, "%.3f %.3f %c\n", 0.125, -8.5, 'c') == 15);
    print(file, 0, "%d %.1f\n", 9, 0.5);
    print(file, 1, "%.1f %d\n", 1.5, 10);
    assert(fflush(file) == 0);
    n_written = 5;
    assert(fputs("last", file) >= 0 && fclose(file) == 0);
    return argument;
}

int main(void)
{
    static const char *lines[] = { "1 two 3.25 4.5 5 6 7\n", "0.125 -8.500 c\n", "9 0.5\n", "1.5 10\n", "last" };
    pthread_t thread;
    char line[64];
    assert(pipe(ends) == 0);
    FILE *file = fdopen(ends[0], "r");
    assert(file != NULL && pthread_create(&thread, NULL, print_all, NULL) == 0);
    for (int i = 0; i < 5; i++) {
        assert(fgets(line, sizeof line, file) == line && strcmp(line, lines[i]) == 0);
        assert(i > 0 || n_written >= 1);
    }
    assert(fgets(line, sizeof line, file) == NULL && feof(file) && n_written == 5);
    assert(fclose(file) == 0 && pthread_join(thread, NULL) == 0);
    return 0;
}
