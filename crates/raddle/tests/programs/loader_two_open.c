// About: one thread is in a constructor, which waits for another thread, while more threads call
// dlopen, dlsym, dladdr, and dlclose, or register destructors of thread-local variables: those wait
// for the loader's lock, and nobody else does.
// Covers: __cxa_thread_atexit_impl, dladdr, dladdr1, dlclose, dlmopen, dlopen, dlsym, sem_wait
// Library: yes
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>

#ifdef LIBRARY
static sem_t gate;
static int n_begun;

static void *post(void *argument)
{
    sem_post(&gate);
    return argument;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t poster;
    n_begun++;
    assert(sem_init(&gate, 0, 0) == 0);
    assert(pthread_create(&poster, NULL, post, NULL) == 0);
    assert(sem_wait(&gate) == 0 && pthread_join(poster, NULL) == 0);
    n_begun++;
}

int n_steps(void)
{
    return n_begun;
}
#else
#define ITSELF "$ORIGIN/loader_two_open.so"

static void *open_it(void *argument)
{
    void *library = dlopen(ITSELF, RTLD_NOW);
    assert(library);
    // Whoever opened it first, its constructor has run.
    int (*n_steps)(void) = (int (*)(void))dlsym(library, "n_steps");
    assert(n_steps && n_steps() == 2 && dlclose(library) == 0);
    return argument;
}

extern void *__dso_handle;
int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *dso);

static void at_exit(void *argument)
{
    ++*(int *)argument;
}

static void *look(void *argument)
{
    static _Thread_local int n_exits;
    assert(__cxa_thread_atexit_impl(at_exit, &n_exits, &__dso_handle) == 0);
    Dl_info info;
    struct link_map *map;
    assert(dladdr(&info, &info) == 0);
    assert(dladdr1((void *)open_it, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 && map);
    assert(dlsym(RTLD_DEFAULT, "malloc"));
    void *library = dlmopen(LM_ID_BASE, "libm.so.6", RTLD_NOW);
    assert(library && dlclose(library) == 0);
    return argument;
}

int main(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert(pthread_create(&threads[i], NULL, i % 2 ? look : open_it, NULL) == 0);
    for (int i = 0; i < 4; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    return 0;
}
#endif
