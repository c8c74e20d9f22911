// About: a signal handler is a place like any other for cancellation: a cancellation point in it acts
// on one, and leaves the interrupted function with it.
// Covers: pthread_cancel, pthread_kill, pthread_testcancel, sigaction
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t up, handled;
static volatile long total;
static int n_left;

static void test(int signal)
{
    (void)signal;
    sem_post(&handled);
    for (;;)
        pthread_testcancel();
}

static void count(void *counter)
{
    ++*(int *)counter;
}

static void release(void *mutex)
{
    assert(pthread_mutex_unlock(mutex) == 0);
}

static void *compute(void *argument)
{
    pthread_cleanup_push(count, &n_left);
    assert(sem_post(&up) == 0);
    for (;;)
        total = total * 3 + 1;
    pthread_cleanup_pop(0);
    return argument;
}

static void *acquire(void *argument)
{
    pthread_cleanup_push(count, &n_left);
    assert(sem_post(&up) == 0);
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(release, &lock);
    pthread_cleanup_pop(1);
    pthread_cleanup_pop(0);
    return argument;
}

static void end(void *(*routine)(void *))
{
    pthread_t thread;
    void *result;
    int n_before = n_left;
    assert(pthread_create(&thread, NULL, routine, NULL) == 0 && sem_wait(&up) == 0);
    assert(pthread_kill(thread, SIGUSR1) == 0 && sem_wait(&handled) == 0);
    assert(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
    assert(result == PTHREAD_CANCELED && n_left == n_before + 1);
}

int main(void)
{
    struct sigaction action = { .sa_handler = test };
    assert(sigaction(SIGUSR1, &action, NULL) == 0);
    assert(sem_init(&up, 0, 0) == 0 && sem_init(&handled, 0, 0) == 0);
    end(compute);
    pthread_mutex_lock(&lock);
    end(acquire);
    assert(pthread_mutex_unlock(&lock) == 0 && pthread_mutex_destroy(&lock) == 0);
    return 0;
}
