// About: a constructor that dlopen runs waits for threads that it has started: it joins one,
// yields until another has set a flag, and goes through pthread_once, all under the loader's lock.
// The threads use what does not need that lock.
// Covers: dl_iterate_phdr, dlclose, dlopen, pthread_join, pthread_once
// Library: yes
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#ifdef LIBRARY
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int n_calls, n_modules;
static atomic_int flag;

static void initialize(void)
{
    n_calls++;
    sched_yield();
}

static int count(struct dl_phdr_info *info, size_t bytes, void *argument)
{
    (void)info;
    (void)bytes;
    ++*(int *)argument;
    return 0;
}

static void *work(void *argument)
{
    char text[16];
    pthread_mutex_lock(&lock);
    assert(dl_iterate_phdr(count, &n_modules) == 0);
    pthread_mutex_unlock(&lock);
    pthread_once(&once, initialize);
    strncpy(text, "text", sizeof text);
    assert(strnlen(text, sizeof text) == 4);
    return argument;
}

static void *set(void *argument)
{
    flag = 1;
    return argument;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t worker, setter;
    assert(pthread_create(&worker, NULL, work, &n_calls) == 0);
    pthread_once(&once, initialize);
    void *result;
    assert(pthread_join(worker, &result) == 0 && result == &n_calls && n_calls == 1);
    assert(n_modules >= 3);
    assert(pthread_create(&setter, NULL, set, NULL) == 0);
    while (!flag)
        sched_yield();
    assert(pthread_join(setter, NULL) == 0);
}

int n_initialized(void)
{
    return n_calls;
}
#else
int main(void)
{
    void *library = dlopen("$ORIGIN/loader_constructor_join.so", RTLD_NOW);
    assert(library);
    int (*n_initialized)(void) = (int (*)(void))dlsym(library, "n_initialized");
    assert(n_initialized && n_initialized() == 1 && dlclose(library) == 0);
    return 0;
}
#endif
