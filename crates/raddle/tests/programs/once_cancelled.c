// About: pthread_once whose initializer is cancelled: the next caller starts it again.
// Covers: pthread_once
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t begun, go;
static int n_begun, n_done;

static void init(void)
{
    n_begun++;
    sem_post(&begun);
    while (sem_wait(&go) != 0) {
    }
    n_done++;
}

static void *use(void *argument)
{
    pthread_once(&once, init);
    assert(n_done == 1);
    return argument;
}

int main(void)
{
    pthread_t first, others[2];
    void *result;
    sem_init(&begun, 0, 0);
    sem_init(&go, 0, 0);
    assert(pthread_create(&first, NULL, use, NULL) == 0);
    assert(sem_wait(&begun) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&others[i], NULL, use, NULL) == 0);
    assert(pthread_cancel(first) == 0);
    assert(pthread_join(first, &result) == 0 && result == PTHREAD_CANCELED);
    assert(sem_post(&go) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(others[i], NULL) == 0);
    assert(n_begun == 2 && n_done == 1);
    return 0;
}
