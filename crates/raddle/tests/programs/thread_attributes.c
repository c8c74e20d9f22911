// About: stack size, stack of one's own, pthread_getattr_np, pthread_setname_np, pthread_equal.
// Covers: pthread_setname_np
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { STACK_BYTES = 1 << 18 };

static void *on_given_stack(void *stack)
{
    pthread_attr_t attributes;
    void *low;
    size_t bytes;
    char here;
    assert(pthread_getattr_np(pthread_self(), &attributes) == 0);
    assert(pthread_attr_getstack(&attributes, &low, &bytes) == 0);
    assert(pthread_attr_destroy(&attributes) == 0);
    assert(&here >= (char *)low && &here < (char *)low + bytes);
    if (stack)
        assert(low == stack && bytes == STACK_BYTES);
    else
        assert(bytes >= 4 * STACK_BYTES);
    return NULL;
}

static void *named(void *argument)
{
    char name[16];
    assert(pthread_setname_np(pthread_self(), "weaver") == 0);
    assert(pthread_getname_np(pthread_self(), name, sizeof name) == 0);
    assert(strcmp(name, "weaver") == 0);
    return argument;
}

int main(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    assert(pthread_attr_init(&attributes) == 0);
    assert(pthread_attr_setstacksize(&attributes, 1) == EINVAL);
    assert(pthread_attr_setstacksize(&attributes, 4 * STACK_BYTES) == 0);
    assert(pthread_create(&thread, &attributes, on_given_stack, NULL) == 0);
    assert(pthread_join(thread, NULL) == 0);

    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert(stack != MAP_FAILED);
    assert(pthread_attr_setstack(&attributes, stack, STACK_BYTES) == 0);
    for (int i = 0; i < 3; i++) {
        assert(pthread_create(&thread, &attributes, on_given_stack, stack) == 0);
        assert(!pthread_equal(thread, pthread_self()));
        assert(pthread_join(thread, NULL) == 0);
    }
    assert(munmap(stack, STACK_BYTES) == 0);

    assert(pthread_create(&thread, NULL, named, NULL) == 0);
    assert(pthread_join(thread, NULL) == 0);
    assert(pthread_setname_np(pthread_self(), "longer than sixteen bytes") == ERANGE);
    return 0;
}
