// What is wrong: `pick` finds nothing and leaves its result as it was, which is whatever the
// call before has left on the stack.
// Isolate: plain
// Build: -fno-stack-protector
// Cause: statement
// Guilty: 2 lines

#include <stdio.h>

struct item {
    int key;
    int value;
};

static struct item items[3] = {{1, 10}, {2, 20}, {3, 30}};

static __attribute__((noinline)) long warm_up(long seed)
{
    volatile long numbers[40];
    for (int i = 0; i < 40; i++)
        numbers[i] = seed + i;
    return numbers[3];
}

static __attribute__((noinline)) int pick(int key)
{
    struct item *found; /* guilty */
    for (int i = 0; i < 3; i++)
        if (items[i].key == key)
            found = &items[i];
    return found->value; /* guilty */
}

int main(void)
{
    long warm = warm_up(5);
    int value = pick(4);
    printf("%ld %d\n", warm, value);
    return 0;
}
