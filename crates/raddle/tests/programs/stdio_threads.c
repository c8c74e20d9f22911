// About: printf, fprintf, puts, fputs, putchar, flockfile, snprintf, vfprintf, fopen, fwrite, setvbuf from
// several threads: lines stay whole.
// Covers: flockfile, funlockfile
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static FILE *file;

static void report(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
}

static void *work(void *argument)
{
    const char *name = argument;
    char text[32];
    for (int i = 0; i < 10; i++) {
        int n = snprintf(text, sizeof text, "%s %d\n", name, i);
        assert(n == (int)strlen(text));
        report("%s", text);
        assert(fwrite(text, 1, n, file) == (size_t)n);
        fprintf(file, "%s %d\n", name, i);
        fputs(text, file);
        flockfile(file);
        for (int c = 0; c < n; c++)
            putc_unlocked(text[c], file);
        funlockfile(file);
        printf("%s %d %.1f %p\n", name, i, i / 2.0, (void *)&file);
        puts(name);
        putchar('\n');
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    char names[3][8] = { "ann", "bob", "cid" }, line[32];
    file = tmpfile();
    assert(file && setvbuf(file, NULL, _IOFBF, 100) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, work, names[i]) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(fflush(file) == 0);
    rewind(file);
    int n_lines = 0;
    while (fgets(line, sizeof line, file)) {
        char name[8], end;
        int number;
        assert(sscanf(line, "%7s %d%c", name, &number, &end) == 3 && end == '\n');
        assert(strlen(name) == 3 && number >= 0 && number < 10);
        n_lines++;
    }
    assert(n_lines == 3 * 10 * 5);
    assert(fclose(file) == 0);
    return 0;
}
