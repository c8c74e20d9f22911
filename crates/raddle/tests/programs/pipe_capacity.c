// About: a write that is larger than the pipe and waits for its reader half way through.
// Covers: write
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { BYTES = 300000 };

static int ends[2];

static void *drain(void *argument)
{
    static unsigned char buffer[10000];
    size_t n_read = 0;
    ssize_t n;
    while ((n = read(ends[0], buffer, sizeof buffer)) > 0) {
        for (ssize_t i = 0; i < n; i += 1000)
            assert(buffer[i] == (unsigned char)((n_read + i) / 1000));
        n_read += n;
    }
    assert(n == 0 && n_read == BYTES);
    return argument;
}

int main(void)
{
    pthread_t thread;
    unsigned char *bytes = malloc(BYTES);
    assert(bytes && pipe(ends) == 0);
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = i / 1000;
    assert(pthread_create(&thread, NULL, drain, NULL) == 0);
    assert(write(ends[1], bytes, BYTES) == BYTES);
    assert(close(ends[1]) == 0);
    assert(pthread_join(thread, NULL) == 0);
    free(bytes);
    return 0;
}
