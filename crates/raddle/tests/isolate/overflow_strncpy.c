// What is wrong: as in prozilla, a mirror's name is copied by strncpy with the length of the
// source, not that of the destination, and overwrites the function's return address.
// Isolate: plain
// Build: -fno-stack-protector -fomit-frame-pointer
// Cause: statement
// Executions: 1 1 0 0
// Guilty: 1 line

#include <stdio.h>
#include <string.h>

static int parse_mirror(const char *line)
{
    char name[24];
    strncpy(name, line, strlen(line)); /* guilty */
    return name[0] == 'h';
}

int main(void)
{
    char line[64];
    memset(line, 'h', 48);
    line[48] = 0;
    int found = parse_mirror(line);
    printf("%d\n", found);
    return 0;
}
