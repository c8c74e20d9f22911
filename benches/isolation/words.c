/* A wrong pointer is copied to more places than there are debug registers; one of them is used a
   billion instructions later. */
#include <stdio.h>
#include <stdlib.h>

#define N_COPIES 64

static int *volatile original;
static int *volatile *copies;
static volatile unsigned long sum;

static __attribute__((noinline)) void forget(void)
{
    original = NULL;
}

static __attribute__((noinline)) unsigned long work(unsigned long n)
{
    unsigned long x = 1;
    for (unsigned long i = 0; i < n; i++)
        x = x * 6364136223846793005ul + i;
    return x;
}

int main(void)
{
    int number = 4;
    original = &number;
    copies = malloc(N_COPIES * sizeof *copies);
    forget();
    for (int i = 0; i < N_COPIES; i++)
        copies[i] = original;
    for (int i = 0; i < 200; i++)
        sum += work(1000000 + i);
    printf("%lu %d\n", sum, *original);
    return 0;
}
