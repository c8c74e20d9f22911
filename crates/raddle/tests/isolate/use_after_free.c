// What is wrong: a handler is removed, and freed, but stays the one that is called last.
// Isolate: plain
// Cause: statement
// Guilty: 1 line

#include <stdio.h>
#include <stdlib.h>

struct handler {
    void (*call)(int);
    int n_calls;
};

static struct handler *last;

static void print(int number)
{
    printf("%d\n", number);
}

static struct handler *add(void)
{
    struct handler *handler = malloc(sizeof *handler);
    handler->call = print;
    handler->n_calls = 0;
    last = handler;
    return handler;
}

static void remove_handler(struct handler *handler)
{
    free(handler); /* guilty */
}

int main(void)
{
    struct handler *handler = add();
    last->call(1);
    remove_handler(handler);
    last->call(2);
    return 0;
}
