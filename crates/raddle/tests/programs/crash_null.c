// About: a null pointer that is followed in a thread, always.
// Covers: Signal
// Outcome: signal SIGSEGV
#include <pthread.h>

struct node {
    struct node *next;
    int value;
};

static struct node *volatile list;

static void *sum(void *argument)
{
    int *total = argument;
    *total = list->value;
    return NULL;
}

int main(void)
{
    int total = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, sum, &total);
    pthread_join(thread, NULL);
    return total;
}
