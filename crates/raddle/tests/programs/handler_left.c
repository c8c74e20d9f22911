// About: signal handlers that are left by a jump, from the thread's own stack and from an alternate one above and below
// it. What the thread calls afterward, it does not call in a handler.
// Covers: malloc, free, pthread_kill
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { BYTES = 1 << 20 };

static sigjmp_buf place;
static void *volatile block;

static void jump(int number)
{
    siglongjmp(place, number);
}

static void leave_handler(int number)
{
    if (sigsetjmp(place, 1) == 0)
        assert(pthread_kill(pthread_self(), number) == 0);
    block = malloc(10);
    free(block);
}

static void *work(void *alternate)
{
    const stack_t stack = { .ss_sp = alternate, .ss_size = BYTES }, none = { .ss_flags = SS_DISABLE };
    leave_handler(SIGUSR1);
    assert(sigaltstack(&stack, NULL) == 0);
    leave_handler(SIGUSR2);
    assert(sigaltstack(&none, NULL) == 0);
    return NULL;
}

int main(void)
{
    const struct sigaction plain = { .sa_handler = jump }, on_stack = { .sa_handler = jump, .sa_flags = SA_ONSTACK };
    assert(sigaction(SIGUSR1, &plain, NULL) == 0 && sigaction(SIGUSR2, &on_stack, NULL) == 0);
    char *memory = mmap(NULL, 3 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(memory != MAP_FAILED);
    pthread_attr_t attributes;
    assert(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, memory + BYTES, BYTES) == 0);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        assert(pthread_create(&thread, &attributes, work, memory + (i == 0 ? 0 : 2 * BYTES)) == 0);
        assert(pthread_join(thread, NULL) == 0);
    }
    return 0;
}
