// What is wrong: as in prozilla, headers are put together by sprintf in a buffer that is too
// small: first a pointer behind it is overwritten, then the function's own return address, then
// that of its caller.
// Isolate: plain
// Build: -fno-stack-protector -fomit-frame-pointer
// Cause: statement
// Executions: 1 3 0 0
// Guilty: 1 line

#include <stdio.h>
#include <string.h>

struct request {
    char header[32];
    const char *path;
};

static __attribute__((noinline)) int fetch_headers(const char *agent)
{
    struct request request;
    request.path = "/index.html";
    sprintf(request.header, "User-Agent: %s", agent); /* guilty */
    return request.path[0] == '/';
}

static __attribute__((noinline)) int get_info(const char *agent)
{
    return 1 + fetch_headers(agent);
}

int main(void)
{
    char agent[128];
    memset(agent, 'x', 78);
    agent[78] = 0;
    int n = get_info(agent);
    printf("%d\n", n);
    return 0;
}
