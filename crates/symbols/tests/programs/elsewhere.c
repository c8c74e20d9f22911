// Compiled without -g: only the declaration in queue.c knows the type.
struct {
    long version;
    int max, min;
    char name[16];
} elsewhere;

// Compiled without -g, and its declaration knows only that it is a number.
int opaque;
