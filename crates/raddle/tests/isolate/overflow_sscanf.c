// What is wrong: as in axel, a server's answer is taken apart by sscanf into a buffer that may
// be too small: a pointer behind it is overwritten, and then the return address.
// Isolate: plain
// Build: -fno-stack-protector -fomit-frame-pointer
// Cause: statement
// Executions: 1 2 0 0
// Guilty: 1 line

#include <stdio.h>
#include <string.h>

struct connection {
    char host[16];
    const char *scheme;
};

static __attribute__((noinline)) int connection_info(const char *url)
{
    struct connection connection;
    connection.scheme = "ftp";
    sscanf(url, "ftp://%[^/]", connection.host); /* guilty */
    return connection.scheme[0] == 'f';
}

int main(void)
{
    char url[64] = "ftp://";
    memset(url + 6, 'a', 44);
    int is_ftp = connection_info(url);
    printf("%d\n", is_ftp);
    return 0;
}
