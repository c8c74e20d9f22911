// About: a handler that blocks all signals is not interrupted by them, also if they arrive together and often.
// Covers: sigaction, kill, pthread_sigmask, sem_post
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

enum { SIGNALS = 3, ROUNDS = 60 };

static int n_handled, depth;
static sem_t handled;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void handle(int signal)
{
    sigset_t blocked;
    assert(depth++ == 0);
    assert(pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0);
    assert(sigismember(&blocked, signal) && sigismember(&blocked, SIGUSR1));
    n_handled++;
    sem_post(&handled);
    depth--;
}

static void *receive(void *argument)
{
    sigset_t real_time;
    sigemptyset(&real_time);
    for (int i = 0; i < SIGNALS; i++)
        sigaddset(&real_time, SIGRTMIN + i);
    pthread_sigmask(SIG_UNBLOCK, &real_time, NULL);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return argument;
}

int main(void)
{
    struct sigaction action = { .sa_handler = handle };
    sigset_t all;
    pthread_t receiver;
    sigfillset(&action.sa_mask);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (int i = 0; i < SIGNALS; i++)
        sigaction(SIGRTMIN + i, &action, NULL);
    sem_init(&handled, 0, 0);
    pthread_mutex_lock(&gate);
    pthread_create(&receiver, NULL, receive, NULL);
    for (int i = 0; i < ROUNDS; i++)
        kill(getpid(), SIGRTMIN + i % SIGNALS);
    for (int i = 0; i < ROUNDS; i++)
        while (sem_wait(&handled) != 0)
            ;
    pthread_mutex_unlock(&gate);
    pthread_join(receiver, NULL);
    assert(n_handled == ROUNDS);
    return 0;
}
