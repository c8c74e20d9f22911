// About: a constructor joins a thread that needs the loader's lock itself, which dlopen holds.
// Covers: dlopen, dlsym
// Library: yes
// Outcome: deadlock
#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>

#ifdef LIBRARY
static void *work(void *argument)
{
    assert(dlsym(RTLD_DEFAULT, "malloc"));
    return argument;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t worker;
    assert(pthread_create(&worker, NULL, work, NULL) == 0);
    assert(pthread_join(worker, NULL) == 0);
}
#else
int main(void)
{
    assert(dlopen("$ORIGIN/loader_deadlock.so", RTLD_NOW));
    return 0;
}
#endif
