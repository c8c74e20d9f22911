// About: a SIGSEGV handler of one's own that leaves by siglongjmp, in several threads; si_addr.
// Covers: sigaction
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>

static _Thread_local sigjmp_buf escape;
static _Thread_local volatile uintptr_t fault_address;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_recovered;

static void handler(int number, siginfo_t *info, void *context)
{
    (void)context;
    fault_address = (uintptr_t)info->si_addr;
    siglongjmp(escape, number);
}

static int readable(volatile int *pointer)
{
    if (sigsetjmp(escape, 1) != 0)
        return 0;
    (void)*pointer;
    return 1;
}

static void *probe(void *argument)
{
    int local = 1;
    for (int i = 1; i <= 5; i++) {
        assert(readable(&local));
        assert(!readable((int *)(uintptr_t)(16 * i)));
        assert(fault_address == (uintptr_t)(16 * i));
        pthread_mutex_lock(&lock);
        n_recovered++;
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
    assert(sigaction(SIGSEGV, &action, NULL) == 0);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, probe, NULL) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_recovered == 15);
    return 0;
}
