// About: signal handlers that call what is not async-signal-safe. Those of SIGUSR1 and SIGTERM are wrong, and that of
// SIGHUP as far as it uses the heap, since the thread raises it itself. What SIGUSR2's calls is safe.
// Covers: malloc, free, printf, pthread_mutex_lock, sem_post, exit
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int n_handled, is_over;
static sem_t handled;
static void *kept, *volatile block;

static void use_heap(void)
{
    block = malloc(10);
    free(block);
}

static void unsafe(int number)
{
    use_heap();
    printf("signal %d\n", number);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    n_handled++;
}

static void safe(int number)
{
    struct timespec now;
    assert(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    assert(write(STDOUT_FILENO, "safe\n", 5) == 5 && sem_post(&handled) == 0);
    n_handled += number == SIGUSR2;
}

static void raised(int number)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    use_heap();
    (void)number;
}

static void leave(int number)
{
    exit(number - SIGTERM);
}

static void free_kept(void)
{
    free(kept);
}

static void *work(void *argument)
{
    while (!is_over)
        usleep(1);
    return argument;
}

int main(void)
{
    pthread_t thread;
    assert(sem_init(&handled, 0, 0) == 0 && signal(SIGUSR1, unsafe) == SIG_DFL && signal(SIGUSR2, safe) == SIG_DFL);
    assert(signal(SIGHUP, raised) == SIG_DFL && signal(SIGTERM, leave) == SIG_DFL);
    assert((kept = malloc(10)) != NULL && atexit(free_kept) == 0);
    assert(pthread_create(&thread, NULL, work, NULL) == 0);
    assert(pthread_kill(thread, SIGUSR1) == 0);
    while (n_handled == 0)
        usleep(1);
    assert(pthread_kill(thread, SIGUSR2) == 0 && sem_wait(&handled) == 0 && raise(SIGHUP) == 0);
    is_over = 1;
    assert(pthread_join(thread, NULL) == 0 && n_handled == 2);
    const struct itimerspec soon = { .it_value.tv_nsec = 1000 };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGTERM };
    timer_t timer;
    assert(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &soon, NULL) == 0);
    for (;;)
        pause();
}
