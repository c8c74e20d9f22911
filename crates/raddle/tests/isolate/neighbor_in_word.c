// What is wrong: an item is counted with the wrong sign. The total shares its eight bytes with a
// flag of the C library, which sets that flag at exit: behind the last write to the total, and by
// code that no table describes.
// Isolate: plain
// Build:
// Cause: statement
// Executions: 1 1 0 0
// Guilty: 1 line

static int total;

static void take(int number)
{
    total = number * 2;
}

static void give_back(int number)
{
    total = total - -number; /* guilty */
}

int main(void)
{
    take(3);
    give_back(6);
    return total == 0 ? 0 : 1;
}
