// About: strcpy and strcat of one thread between strlen and memcpy of another.
// Covers: memcpy, strcat, strcpy, strlen
// Outcome: exit 0 | assert
// Must: assert
// Flags: -fno-builtin
//
// Left to itself, gcc expands these calls in place and does not instrument what it makes of them.
#include <assert.h>
#include <pthread.h>
#include <string.h>

static char title[64] = "short";

static void *rename_it(void *argument)
{
    strcpy(title, "a title that is ");
    strcat(title, "rather longer");
    return argument;
}

static void *copy_it(void *argument)
{
    char copy[64] = "";
    size_t n = strlen(title);
    memcpy(copy, title, n);
    assert(strcmp(copy, "short") == 0 || strcmp(copy, "a title that is rather longer") == 0);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, copy_it, NULL);
    pthread_create(&threads[1], NULL, rename_it, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
