// Says: SIGABRT
// A handler of a library aborts on a stack of its own: the line that was interrupted is meant, which
// lies on another stack.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

static int *volatile pointer;

static void *run(void *argument)
{
    stack_t stack = { .ss_sp = malloc(1 << 16), .ss_size = 1 << 16 };
    sigaltstack(&stack, 0);
    struct sigaction action = { .sa_handler = (void (*)(int))abort, .sa_flags = SA_ONSTACK };
    sigaction(SIGSEGV, &action, 0);
    *pointer = 1; // died
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    pthread_join(thread, 0);
}
