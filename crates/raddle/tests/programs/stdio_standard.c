// About: printf, putchar, perror and their kin into a pipe in place of standard output and standard error; numbers in
// vector registers arrive.
// Covers: printf, vprintf, __printf_chk, __vprintf_chk, putchar, putc, fputc, perror
// Outcome: exit 0
// Flags: -fno-builtin -fno-inline
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// What -D_FORTIFY_SOURCE makes of them.
int __printf_chk(int, const char *, ...);
int __vprintf_chk(int, const char *, va_list);

static void print(int checked, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    assert((checked ? __vprintf_chk(1, format, list) : vprintf(format, list)) > 0);
    va_end(list);
}

int main(void)
{
    static const char expected[] = "1 two 3.25 4.5 5 6 7\n0.125 -8.500 c\n9 0.5\n1.5 10\nabc\nwrong: Invalid argument\n";
    char text[128] = { 0 };
    int ends[2];
    assert(pipe(ends) == 0 && dup2(ends[1], STDOUT_FILENO) >= 0 && dup2(ends[1], STDERR_FILENO) >= 0);
    assert(printf("%d %s %.2f %.1f %d %d %d\n", 1, "two", 3.25, 4.5, 5, 6, 7) == 21);
    assert(__printf_chk(1, "%.3f %.3f %c\n", 0.125, -8.5, 'c') == 15);
    print(0, "%d %.1f\n", 9, 0.5);
    print(1, "%.1f %d\n", 1.5, 10);
    assert(putchar('a') == 'a' && (putc)('b', stdout) == 'b' && fputc('c', stdout) == 'c' && putchar('\n') == '\n');
    assert(fflush(stdout) == 0);
    errno = EINVAL;
    perror("wrong");
    assert(read(ends[0], text, sizeof text - 1) == sizeof expected - 1 && strcmp(text, expected) == 0);
    return 0;
}
