// About: dlopen, dlsym, dlclose, dlerror, dl_iterate_phdr from several threads.
// Covers: dlclose, dlopen
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_roots;

static int count(struct dl_phdr_info *info, size_t bytes, void *argument)
{
    (void)info;
    (void)bytes;
    ++*(int *)argument;
    return 0;
}

static void *work(void *argument)
{
    for (int i = 0; i < 3; i++) {
        void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
        assert(library);
        double (*root)(double) = (double (*)(double))dlsym(library, "sqrt");
        assert(root && root(16.0) == 4.0);
        assert(dlsym(library, "no_such_function_anywhere") == NULL && dlerror() != NULL);
        int n_modules = 0;
        assert(dl_iterate_phdr(count, &n_modules) == 0 && n_modules >= 3);
        assert(dlclose(library) == 0);
        pthread_mutex_lock(&lock);
        n_roots++;
        pthread_mutex_unlock(&lock);
    }
    assert(dlopen("libno-such-library.so", RTLD_LAZY) == NULL && dlerror() != NULL);
    return argument;
}

int main(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_roots == 9);
    return 0;
}
