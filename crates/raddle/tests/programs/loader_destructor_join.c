// About: a library that keeps a thread: its constructor waits on a condition variable until the
// thread is up, and its destructor, which dlclose runs, tells it to stop and joins it.
// Covers: dlclose, dlopen, dlsym, pthread_cond_wait
// Library: yes
// Outcome: exit 0
#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>

#ifdef LIBRARY
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static enum { STARTING, UP, STOPPING } state;
static pthread_t worker;

static void change(int new)
{
    pthread_mutex_lock(&lock);
    state = new;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void *work(void *argument)
{
    change(UP);
    pthread_mutex_lock(&lock);
    while (state != STOPPING)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return argument;
}

__attribute__((constructor)) static void begin(void)
{
    assert(pthread_create(&worker, NULL, work, NULL) == 0);
    pthread_mutex_lock(&lock);
    while (state != UP)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void end(void)
{
    change(STOPPING);
    assert(pthread_join(worker, NULL) == 0);
}

int is_up(void)
{
    return state == UP;
}
#else
int main(void)
{
    for (int i = 0; i < 2; i++) {
        void *library = dlopen("$ORIGIN/loader_destructor_join.so", RTLD_NOW);
        assert(library);
        int (*is_up)(void) = (int (*)(void))dlsym(library, "is_up");
        assert(is_up && is_up() && dlclose(library) == 0);
    }
    return 0;
}
#endif
