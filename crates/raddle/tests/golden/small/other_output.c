// What is wrong: it does the same each time and prints something else, by a file.

#include <pthread.h>
#include <stdio.h>

static void *other(void *p) { return p; }

int main(void)
{
    pthread_t thread;

    pthread_create(&thread, 0, other, 0);
    pthread_join(thread, 0);
    FILE *file = fopen("starts", "a+");
    fputc('x', file);
    fflush(file);
    printf("%ld\n", ftell(file));
    fclose(file);
    return 0;
}
