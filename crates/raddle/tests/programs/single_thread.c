// About: a program without threads: locks, heap, files, exit status.
// Covers: free, malloc, pthread_mutex_lock, pthread_mutex_unlock, strcmp, WriteRange
// Outcome: exit 0
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *left, const void *right)
{
    return *(const int *)left - *(const int *)right;
}

int main(void)
{
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int *numbers = malloc(200 * sizeof *numbers);
    assert(numbers && pthread_mutex_lock(&lock) == 0);
    for (int i = 0; i < 200; i++)
        numbers[i] = i * 7919 % 200;
    qsort(numbers, 200, sizeof *numbers, compare);
    int wanted = 150, *found = bsearch(&wanted, numbers, 200, sizeof *numbers, compare);
    assert(found == &numbers[150]);
    assert(pthread_mutex_unlock(&lock) == 0);
    FILE *missing = fopen("/no/such/file", "r");
    assert(!missing && errno == ENOENT && strcmp(strerror(ENOENT), "No such file or directory") == 0);
    free(numbers);
    puts("done");
    return 0;
}
