// What is wrong: a row is filled with one element too many; the last one overwrites the pointer
// in the block behind it.
// Isolate: plain
// Cause: statement
// Guilty: 1 line

#include <stdio.h>
#include <stdlib.h>

struct owner {
    char *name;
    long id;
};

static long *row;
static struct owner *owner;

static void fill(long n)
{
    for (long i = 0; i < n; i++)
        row[i] = 3 * i; /* guilty */
}

int main(void)
{
    row = malloc(6 * sizeof *row);
    owner = malloc(sizeof *owner);
    owner->name = "somebody";
    owner->id = 1;
    fill(9);
    printf("%c %ld\n", owner->name[0], owner->id);
    return 0;
}
