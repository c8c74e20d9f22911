/* A pointer is cleared, a billion instructions later it is used. */
#include <stdio.h>
#include <stdlib.h>

struct box {
    int *volatile value;
    volatile long n;
};

static struct box *box;
static volatile unsigned long sum;

static __attribute__((noinline)) void forget(void)
{
    box->value = NULL;
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
    box = malloc(sizeof *box);
    box->value = &number;
    forget();
    int *copy = box->value;
    for (int i = 0; i < 200; i++) {
        sum += work(1000000 + i);
        if (i % 20 == 0)
            box->n += box->value != NULL;
    }
    printf("%lu %d\n", sum, *copy);
    return 0;
}
