// About: two threads convert times with gmtime and others, which have one buffer for all.
// Covers: asctime, ctime, gmtime, localtime
// Outcome: exit 0 | assert
// Must: assert
#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

static void *convert(void *argument)
{
    const time_t *time = argument;
    struct tm own;
    gmtime_r(time, &own);
    assert(gmtime(time)->tm_year == own.tm_year);
    assert(localtime(time)->tm_year == own.tm_year);
    char *text = ctime(time);
    assert(text != NULL && strlen(asctime(&own)) == 25);
    return argument;
}

int main(void)
{
    // In the middle of two years.
    time_t times[2] = { 962409600, 1277942400 };
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, convert, &times[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
