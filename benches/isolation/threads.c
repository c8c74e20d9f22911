/* A thread clears a pointer that another one has tested, and uses a billion instructions later. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct box {
    int *volatile value;
    volatile long n;
};

static struct box *box;
static volatile unsigned long sum;

static unsigned long work(unsigned long n)
{
    unsigned long x = 1;
    for (unsigned long i = 0; i < n; i++)
        x = x * 6364136223846793005ul + i;
    return x;
}

static void *forget(void *argument)
{
    usleep(100000);
    box->value = NULL;
    return argument;
}

static void *use(void *argument)
{
    if (box->value == NULL)
        return argument;
    usleep(300000);
    int *copy = box->value;
    for (int i = 0; i < 200; i++) {
        sum += work(1000000 + i);
        if (i % 20 == 0)
            box->n += box->value != NULL;
    }
    printf("%lu %d\n", sum, *copy);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    int number = 4;
    box = malloc(sizeof *box);
    box->value = &number;
    pthread_create(&threads[0], NULL, use, NULL);
    pthread_create(&threads[1], NULL, forget, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
