// About: a length that one thread checks and another raises: _FORTIFY_SOURCE finds the overflow.
// Covers: __strcpy_chk, __read_chk
// Outcome: exit 0 | signal SIGABRT
// Must: signal SIGABRT
// Flags: -O2 -D_FORTIFY_SOURCE=2
#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static char buffer[8], text[16] = "short";
static size_t n_wanted = 4;

// Apart, so that the compiler does not conclude from the checks what the calls may rely on.
__attribute__((noipa)) static int fits(void)
{
    return n_wanted <= sizeof buffer && strlen(text) < sizeof buffer;
}

static void *grow(void *argument)
{
    n_wanted = 12;
    strcpy(text, "far too long");
    return argument;
}

int main(void)
{
    pthread_t thread;
    int ends[2];
    assert(pipe(ends) == 0 && write(ends[1], "0123456789ab", 12) == 12);
    assert(pthread_create(&thread, NULL, grow, NULL) == 0);
    if (fits()) {
        assert(read(ends[0], buffer, n_wanted) > 0);
        strcpy(buffer, text);
    }
    assert(pthread_join(thread, NULL) == 0);
    return 0;
}
