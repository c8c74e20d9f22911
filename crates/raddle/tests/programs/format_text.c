// About: sprintf, snprintf and their variants with integers, floating-point numbers and arguments on the stack.
// Covers: snprintf, sprintf, vsnprintf, vsprintf, ReadRange, WriteRange
// Outcome: exit 0
// Flags: -fno-builtin
#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char shared[128];

static int print(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsprintf(shared, format, arguments);
    va_end(arguments);
    return n;
}

static int print_max(size_t max, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(shared, max, format, arguments);
    va_end(arguments);
    return n;
}

static void *work(void *argument)
{
    const char *name = argument;
    pthread_mutex_lock(&lock);
    assert(sprintf(shared, "%s %d %.2f", name, -7, 0.25) == (int)strlen(name) + 8);
    assert(strncmp(shared, name, strlen(name)) == 0 && strstr(shared, " -7 0.25"));
    assert(snprintf(shared, sizeof shared, "%d%d%d%d%d%d%d%d %.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f %.1f %Lg", 1, 2,
                    3, 4, 5, 6, 7, 8, .1, .2, .3, .4, .5, .6, .7, .8, .9, 1.0, 2.5L) == 52);
    assert(strcmp(shared, "12345678 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0 2.5") == 0);
    assert(snprintf(shared, 4, "%s", "longer") == 6 && strcmp(shared, "lon") == 0);
    assert(snprintf(NULL, 0, "%d", 12345) == 5);
    assert(print("%c%lld%g", 'c', 1LL << 40, 1.5) == 17 && strcmp(shared, "c10995116277761.5") == 0);
    assert(print_max(6, "%d %s", 42, name) == (int)strlen(name) + 3 && strlen(shared) == 5);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    char names[2][8] = { "warp", "heddle" };
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, work, names[i]) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    return 0;
}
