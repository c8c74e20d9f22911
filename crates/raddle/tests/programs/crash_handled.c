// About: a SIGSEGV handler of one's own that ends the process with a status.
// Covers: _exit, signal
// Outcome: exit 42
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static int *volatile nowhere;

static void handler(int number)
{
    _exit(number == SIGSEGV ? 42 : 43);
}

static void *crash(void *argument)
{
    *nowhere = 1;
    return argument;
}

int main(void)
{
    pthread_t thread;
    signal(SIGSEGV, handler);
    pthread_create(&thread, NULL, crash, NULL);
    pthread_join(thread, NULL);
    return 0;
}
