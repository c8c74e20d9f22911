// About: main returns while other threads run, sleep, wait, and one of them may still end the process.
// Covers: sleep
// Outcome: exit 3 | exit 4
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static volatile unsigned long work_done;

static void *works(void *argument)
{
    for (;;)
        work_done++;
    return argument;
}

static void *sleeps(void *argument)
{
    sleep(100000);
    return argument;
}

static void *waits(void *argument)
{
    pthread_mutex_lock(&lock);
    for (;;)
        pthread_cond_wait(&never, &lock);
    return argument;
}

static void *leaves(void *argument)
{
    (void)argument;
    _exit(4);
}

int main(void)
{
    void *(*const starts[])(void *) = { works, sleeps, waits, leaves };
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, starts[i], NULL);
    }
    return 3;
}
