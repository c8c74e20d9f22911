// Nothing is wrong: one thread, and every run passes: there is nothing to localize, and no other
// order to try.

#include <assert.h>

static int count;

static void add(int n)
{
    for (int i = 0; i < n; i++)
        count++;
}

int main(void)
{
    add(3);
    add(4);
    assert(count == 7);
    return 0;
}
