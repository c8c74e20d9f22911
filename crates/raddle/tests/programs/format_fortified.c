// About: sprintf and snprintf as _FORTIFY_SOURCE calls them, into a buffer that two threads share: texts get mixed
// up.
// Covers: __snprintf_chk, __sprintf_chk, __vsnprintf_chk, __vsprintf_chk
// Outcome: exit 0 | assert
// Must: assert
// Flags: -O2 -D_FORTIFY_SOURCE=2
#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char shared[32];

static void print(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsprintf(shared, format, arguments);
    va_end(arguments);
}

static void print_max(size_t max, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(shared, max, format, arguments);
    va_end(arguments);
}

static void *work(void *argument)
{
    const char *name = argument;
    sprintf(shared, "%s %d %g", name, 1, 0.5);
    assert(strncmp(shared, name, 4) == 0);
    snprintf(shared, sizeof shared, "%s %d %d %d %d %d", name, 1, 2, 3, 4, 5);
    assert(strncmp(shared, name, 4) == 0);
    print("%s %d", name, 2);
    assert(strncmp(shared, name, 4) == 0);
    print_max(strlen(name) + 3, "%s %d", name, 2);
    assert(strncmp(shared, name, 4) == 0);
    return argument;
}

int main(void)
{
    char names[2][8] = { "warp", "weft" };
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, names[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
