// What is wrong: on the way out after an error a buffer is freed, which was freed when the error
// was found.
// Isolate: plain
// Cause: statement
// Guilty: 2 lines

#include <stdio.h>
#include <stdlib.h>

struct parser {
    char *buffer;
    int error;
};

static void fail(struct parser *parser)
{
    parser->error = 1;
    free(parser->buffer); /* guilty */
}

static void finish(struct parser *parser)
{
    if (parser->error)
        printf("error\n");
    free(parser->buffer); /* guilty */
}

int main(void)
{
    struct parser parser = {.buffer = malloc(100)};
    fail(&parser);
    finish(&parser);
    return 0;
}
