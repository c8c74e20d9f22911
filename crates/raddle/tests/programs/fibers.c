// About: ucontext fibers with __tsan_create_fiber, __tsan_switch_to_fiber, __tsan_destroy_fiber.
// Covers: __tsan_create_fiber, __tsan_destroy_fiber, __tsan_get_current_fiber,
// Covers: __tsan_switch_to_fiber, Fiber
// Outcome: exit 0
//
// Two threads run a fiber each, and after them two other threads run the same fibers on.
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <ucontext.h>

// Weak, so that the program links without instrumentation as well.
__attribute__((weak)) void *__tsan_get_current_fiber(void);
__attribute__((weak)) void *__tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void *fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void *fiber, unsigned flags);

struct fiber {
    ucontext_t context;
    void *tsan;
    struct fiber *caller;
    int steps;
    char stack[1 << 16];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int total;

static void switch_to(struct fiber *from, struct fiber *to)
{
    __tsan_switch_to_fiber ? __tsan_switch_to_fiber(to->tsan, 0) : (void)0;
    swapcontext(&from->context, &to->context);
}

static void body(unsigned high, unsigned low)
{
    struct fiber *me = (struct fiber *)((unsigned long)high << 32 | low);
    for (;;) {
        pthread_mutex_lock(&lock);
        total++;
        pthread_mutex_unlock(&lock);
        me->steps++;
        switch_to(me, me->caller);
    }
}

static struct fiber *make(void)
{
    struct fiber *fiber = calloc(1, sizeof *fiber);
    unsigned long address = (unsigned long)fiber;
    fiber->tsan = __tsan_create_fiber ? __tsan_create_fiber(0) : NULL;
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = sizeof fiber->stack;
    makecontext(&fiber->context, (void (*)(void))body, 2, (unsigned)(address >> 32), (unsigned)address);
    return fiber;
}

static void *run(void *argument)
{
    struct fiber self = { .steps = 0 }, *fiber = argument;
    self.tsan = __tsan_get_current_fiber ? __tsan_get_current_fiber() : NULL;
    for (int i = 0; i < 5; i++) {
        fiber->caller = &self;
        switch_to(&self, fiber);
    }
    return NULL;
}

int main(void)
{
    struct fiber *fibers[2] = { make(), make() };
    for (int round = 0; round < 2; round++) {
        pthread_t threads[2];
        for (int i = 0; i < 2; i++)
            assert(pthread_create(&threads[i], NULL, run, fibers[i]) == 0);
        for (int i = 0; i < 2; i++)
            assert(pthread_join(threads[i], NULL) == 0);
    }
    for (int i = 0; i < 2; i++) {
        assert(fibers[i]->steps == 10);
        __tsan_destroy_fiber ? __tsan_destroy_fiber(fibers[i]->tsan) : (void)0;
        free(fibers[i]);
    }
    assert(total == 20);
    return 0;
}
