// Says: is_valid
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static int numbers[64];

static int checked(int number)
{
    int is_valid = number != 40;
    assert(is_valid); // died
    return number;
}

static int compare(const void *one, const void *two)
{
    return checked(*(const int *)one) - checked(*(const int *)two);
}

static void *sort(void *argument)
{
    qsort(numbers, 64, sizeof *numbers, compare);
    return argument;
}

int main(void)
{
    for (int i = 0; i < 64; i++)
        numbers[i] = i * 37 % 64;
    pthread_t thread;
    pthread_create(&thread, 0, sort, 0);
    pthread_join(thread, 0);
}
