// About: a cancellation that is pending when a cancellation point is called, though the call would not wait; a
// wake-up of a condition variable that is not lost to a cancelled thread; cleanup handlers that wait.
// Covers: connect, pthread_cancel, pthread_cond_wait, pthread_join, pthread_setcancelstate, read, recv
// Covers: select, sem_wait, sigtimedwait, usleep, wait, waitid, waitpid, write
// Outcome: exit 0
// Free: no, a call that does not block is no cancellation point with threads in parallel
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int full_pipe[2], pair[2];
static sem_t above, cleaned_up;
static pthread_t ended;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int n_waiting, n_tokens;
static char byte;

static void do_read(void) { (void)!read(full_pipe[0], &byte, 1); }
static void do_write(void) { (void)!write(full_pipe[1], &byte, 1); }
static void do_recv(void) { recv(pair[0], &byte, 1, 0); }
static void do_send(void) { send(pair[0], &byte, 1, 0); }
static void do_connect(void) { connect(pair[0], NULL, 0); }
static void do_sem_wait(void) { sem_wait(&above); }
static void do_usleep(void) { usleep(0); }
static void do_wait(void) { wait(NULL); }
static void do_waitpid(void) { waitpid(-1, NULL, WNOHANG); }
static void do_waitid(void) { waitid(P_ALL, 0, NULL, WEXITED); }
static void do_poll(void) { poll(&(struct pollfd){ .fd = full_pipe[0], .events = POLLIN }, 1, 0); }
static void do_select(void) { select(0, NULL, NULL, NULL, &(struct timeval){ 0 }); }
static void do_sigtimedwait(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigtimedwait(&set, NULL, &(struct timespec){ 0 });
}
static void do_cond_wait(void)
{
    pthread_mutex_lock(&lock);
    pthread_cleanup_push((void (*)(void *))pthread_mutex_unlock, &lock);
    pthread_cond_wait(&changed, &lock);
    pthread_cleanup_pop(1);
}

// A thread that has ended is joined all the same.
static void do_join(void)
{
    assert(pthread_join(ended, NULL) == 0);
    pthread_testcancel();
}

static void (*const points[])(void) = {
    do_read, do_write, do_recv, do_send, do_connect, do_sem_wait, do_join, do_usleep, do_wait,
    do_waitpid, do_waitid, do_poll, do_select, do_sigtimedwait, do_cond_wait,
};

// Waits, and is not cancelled again.
static void clean_up(void *argument)
{
    (void)argument;
    assert(usleep(1000) == 0);
    assert(read(full_pipe[0], &byte, 1) == 1 && write(full_pipe[1], &byte, 1) == 1);
    assert(sem_post(&cleaned_up) == 0);
}

static void *act_at(void *point)
{
    int old;
    assert(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL) == 0);
    assert(pthread_cancel(pthread_self()) == 0);
    pthread_testcancel();
    assert(usleep(10) == 0);
    // Not a cancellation point.
    assert(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old) == 0 && old == PTHREAD_CANCEL_DISABLE);
    assert(pthread_mutex_lock(&lock) == 0 && pthread_mutex_unlock(&lock) == 0);
    pthread_cleanup_push(clean_up, NULL);
    (*(void (**)(void))point)();
    assert(!"outlived its cancellation");
    pthread_cleanup_pop(0);
    return NULL;
}

static void unlock(void *argument)
{
    assert(pthread_mutex_unlock(argument) == 0);
}

// Takes one token. Who is cancelled after a wake-up has to leave that to others.
static void *take(void *argument)
{
    assert(pthread_mutex_lock(&lock) == 0);
    pthread_cleanup_push(unlock, &lock);
    n_waiting++;
    while (n_tokens == 0)
        assert(pthread_cond_wait(&changed, &lock) == 0);
    n_tokens--;
    pthread_cleanup_pop(1);
    return argument;
}

static void *nothing(void *argument)
{
    return argument;
}

int main(void)
{
    void *result;
    assert(pipe(full_pipe) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    assert(write(full_pipe[1], "xy", 2) == 2 && send(pair[1], "xy", 2, 0) == 2);
    assert(sem_init(&above, 0, 1) == 0 && sem_init(&cleaned_up, 0, 0) == 0);
    assert(pthread_create(&ended, NULL, nothing, NULL) == 0);
    usleep(1000);
    for (unsigned i = 0; i < sizeof points / sizeof *points; i++) {
        pthread_t thread;
        assert(pthread_create(&thread, NULL, act_at, (void *)&points[i]) == 0);
        assert(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
        assert(sem_trywait(&cleaned_up) == 0);
    }
    // Nothing was taken.
    int value;
    assert(sem_getvalue(&above, &value) == 0 && value == 1);
    assert(read(full_pipe[0], "  ", 0) == 0);
    struct pollfd input = { .fd = pair[0], .events = POLLIN };
    assert(poll(&input, 1, 0) == 1);

    // One of two waiters is woken and one cancelled: one takes the token, whoever it is.
    pthread_t takers[2];
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&takers[i], NULL, take, NULL) == 0);
    assert(pthread_mutex_lock(&lock) == 0);
    while (n_waiting < 2) {
        assert(pthread_mutex_unlock(&lock) == 0);
        usleep(1000);
        assert(pthread_mutex_lock(&lock) == 0);
    }
    n_tokens = 1;
    assert(pthread_cond_signal(&changed) == 0);
    assert(pthread_cancel(takers[0]) == 0);
    assert(pthread_mutex_unlock(&lock) == 0);
    usleep(1000);
    assert(pthread_join(takers[0], &result) == 0);
    assert(pthread_mutex_lock(&lock) == 0);
    n_tokens++;
    assert(pthread_cond_signal(&changed) == 0);
    assert(pthread_mutex_unlock(&lock) == 0);
    assert(pthread_join(takers[1], &result) == 0 && result == NULL);
    return 0;
}
