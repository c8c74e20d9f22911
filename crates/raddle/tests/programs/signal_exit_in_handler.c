// About: pthread_exit in a signal handler ends the interrupted thread, wherever it is: in a loop, in
// a lock, in pthread_cond_wait, whose mutex it then holds, in sem_wait, in read, and in raise. The frames that
// it leaves run their cleanup handlers.
// Covers: pthread_cond_wait, pthread_kill, pthread_mutex_lock, raise, read, sem_wait, sigaction
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t up, none;
static int ends[2], n_left;
static atomic_long n_rounds;
static volatile long total;

static void leave(int signal)
{
    pthread_exit((void *)(long)signal);
}

static void count(void *counter)
{
    ++*(int *)counter;
}

static void release(void *mutex)
{
    assert(pthread_mutex_unlock(mutex) == 0);
}

static void compute(void)
{
    for (;;)
        total = total * 3 + 1;
}

static void spin(void)
{
    for (;;)
        n_rounds++;
}

static void acquire(void)
{
    pthread_mutex_lock(&held);
}

static void await(void)
{
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(release, &lock);
    for (;;)
        pthread_cond_wait(&never, &lock);
    pthread_cleanup_pop(0);
}

static void lower(void)
{
    while (sem_wait(&none))
        ;
}

static void receive(void)
{
    char byte;
    while (read(ends[0], &byte, 1) < 0)
        ;
}

static void call(void)
{
    raise(SIGUSR1);
}

static void (*const places[])(void) = { compute, spin, acquire, await, lower, receive, call };
enum { N = sizeof places / sizeof *places };

static void *run(void *place)
{
    pthread_cleanup_push(count, &n_left);
    assert(sem_post(&up) == 0);
    (*(void (**)(void))place)();
    pthread_cleanup_pop(0);
    return NULL;
}

int main(void)
{
    struct sigaction action = { .sa_handler = leave };
    assert(sigaction(SIGUSR1, &action, NULL) == 0 && pipe(ends) == 0);
    assert(sem_init(&up, 0, 0) == 0 && sem_init(&none, 0, 0) == 0);
    pthread_mutex_lock(&held);
    for (int i = 0; i < N; i++) {
        pthread_t thread;
        void *result;
        assert(pthread_create(&thread, NULL, run, (void *)&places[i]) == 0);
        assert(sem_wait(&up) == 0);
        if (places[i] != call)
            assert(pthread_kill(thread, SIGUSR1) == 0);
        assert(pthread_join(thread, &result) == 0 && result == (void *)SIGUSR1);
        assert(n_left == i + 1);
    }
    assert(pthread_mutex_lock(&lock) == 0 && pthread_mutex_unlock(&lock) == 0);
    assert(pthread_mutex_unlock(&held) == 0 && pthread_mutex_destroy(&held) == 0);
    assert(pthread_mutex_destroy(&lock) == 0 && pthread_cond_destroy(&never) == 0);
    return 0;
}
