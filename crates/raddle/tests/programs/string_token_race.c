// About: two threads split lists with strtok, which keeps the rest of the text in one place for all.
// Covers: strtok
// Outcome: exit 0 | assert
// Must: assert
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

static void *split(void *argument)
{
    int n = 0;
    for (char *word = strtok(argument, ","); word; word = strtok(NULL, ","))
        n++;
    assert(n == 3);
    return NULL;
}

int main(void)
{
    char lists[2][8] = { "a,b,c", "d,e,f" };
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, split, lists[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
