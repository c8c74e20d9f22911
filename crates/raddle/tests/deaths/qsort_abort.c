// Says: SIGABRT
// A call back from a library: the frames of qsort lie between the program's.
#include <pthread.h>
#include <stdlib.h>

static int numbers[64];

static int compare(const void *one, const void *two)
{
    int a = *(const int *)one, b = *(const int *)two;
    if (a == b)
        abort(); // died
    return a < b ? -1 : 1;
}

static void *sort(void *argument)
{
    qsort(numbers, 64, sizeof *numbers, compare);
    return argument;
}

int main(void)
{
    for (int i = 0; i < 64; i++)
        numbers[i] = i * 37 % 63;
    pthread_t thread;
    pthread_create(&thread, 0, sort, 0);
    pthread_join(thread, 0);
}
