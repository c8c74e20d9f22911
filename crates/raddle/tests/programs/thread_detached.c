// About: detached threads, by attribute and by pthread_detach.
// Covers: pthread_detach
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>

enum { THREADS = 6 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_done = PTHREAD_COND_INITIALIZER;
static int n_done;

static void *work(void *argument)
{
    if (argument)
        assert(pthread_detach(pthread_self()) == 0);
    pthread_mutex_lock(&lock);
    if (++n_done == THREADS)
        pthread_cond_signal(&all_done);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_attr_t detached;
    int state;
    assert(pthread_attr_init(&detached) == 0);
    assert(pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED) == 0);
    assert(pthread_attr_getdetachstate(&detached, &state) == 0 && state == PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < THREADS; i++) {
        pthread_t thread;
        if (i % 2 == 0)
            assert(pthread_create(&thread, &detached, work, NULL) == 0);
        else
            assert(pthread_create(&thread, NULL, work, &lock) == 0);
    }
    pthread_mutex_lock(&lock);
    while (n_done < THREADS)
        pthread_cond_wait(&all_done, &lock);
    pthread_mutex_unlock(&lock);
    return 0;
}
