// About: arguments, environment, working directory, exit status by argument.
// Covers: __libc_start_main, __tsan_init, strcmp, ReadRange
// Outcome: exit 23
// Args: 23 two three
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static char **words;

static void *check(void *argument)
{
    assert(strcmp(words[2], "two") == 0 && strcmp(words[3], "three") == 0 && words[4] == NULL);
    assert(getenv("PATH") != NULL && getenv("RADDLE_NO_SUCH_VARIABLE") == NULL);
    return argument;
}

int main(int n_words, char **arguments)
{
    pthread_t thread;
    assert(n_words == 4);
    words = arguments;
    assert(pthread_create(&thread, NULL, check, NULL) == 0);
    assert(pthread_join(thread, NULL) == 0);
    assert(setenv("RADDLE_NO_SUCH_VARIABLE", "1", 1) == 0 && getenv("RADDLE_NO_SUCH_VARIABLE"));
    return atoi(words[1]);
}
