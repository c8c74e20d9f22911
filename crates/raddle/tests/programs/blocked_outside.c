// About: calls that block in the kernel, without the turn: msgrcv, msgsnd, flock, fcntl and lockf against
// another file or process, opening a FIFO, wait3, pclose.
// Covers: msgrcv, msgsnd, flock, fcntl, fcntl64, lockf, lockf64, open, open64, openat, openat64, wait3, pclose
// Outcome: exit 0
// External: the kernel decides who continues
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// A name that headers hide.
int fcntl64(int, int, ...);

struct message {
    long type;
    char text[8];
};
static char name[] = "/tmp/raddle-blocked-XXXXXX", fifo[64];
static int queue, holder;
static sem_t locked;

static void *receive(void *argument)
{
    struct message message;
    assert(msgrcv(queue, &message, sizeof message.text, 1, 0) == 2 && memcmp(message.text, "hi", 2) == 0);
    return argument;
}

static void messages(void)
{
    pthread_t thread;
    struct message message = { 1, "hi" };
    queue = msgget(IPC_PRIVATE, 0600);
    if (queue < 0)
        return;
    assert(pthread_create(&thread, NULL, receive, NULL) == 0);
    assert(msgsnd(queue, &message, 2, 0) == 0);
    assert(pthread_join(thread, NULL) == 0);
    assert(msgrcv(queue, &message, sizeof message.text, 1, IPC_NOWAIT) == -1 && errno == ENOMSG);
    assert(msgctl(queue, IPC_RMID, NULL) == 0);
}

static void *hold(void *argument)
{
    assert(flock(holder, LOCK_EX) == 0 && sem_post(&locked) == 0);
    sched_yield();
    assert(flock(holder, LOCK_UN) == 0);
    return argument;
}

static void file_locks(void)
{
    pthread_t thread;
    struct flock part = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    int file = open(name, O_RDWR);
    assert(file >= 0 && (holder = open64(name, O_RDWR)) >= 0 && sem_init(&locked, 0, 0) == 0);
    assert(pthread_create(&thread, NULL, hold, NULL) == 0);
    assert(sem_wait(&locked) == 0 && flock(file, LOCK_EX) == 0 && flock(file, LOCK_UN) == 0);
    assert(pthread_join(thread, NULL) == 0);
    assert(fcntl(file, F_GETFL) & O_RDWR && fcntl(file, F_SETLKW, &part) == 0);
    part.l_type = F_UNLCK;
    assert(fcntl64(file, F_SETLKW, &part) == 0);
    assert(lockf(file, F_LOCK, 1) == 0 && lockf(file, F_ULOCK, 1) == 0);
    assert(lockf64(file, F_LOCK, 1) == 0 && lockf64(file, F_ULOCK, 1) == 0);
    close(file), close(holder);
}

static void *open_reader(void *argument)
{
    char byte;
    int end = openat(AT_FDCWD, fifo, O_RDONLY);
    assert(end >= 0 && read(end, &byte, 1) == 1 && byte == 'x' && close(end) == 0);
    return argument;
}

static void fifos(void)
{
    pthread_t thread;
    snprintf(fifo, sizeof fifo, "%s-fifo", name);
    assert(mkfifo(fifo, 0600) == 0);
    assert(pthread_create(&thread, NULL, open_reader, NULL) == 0);
    int end = openat64(AT_FDCWD, fifo, O_WRONLY);
    assert(end >= 0 && write(end, "x", 1) == 1 && close(end) == 0);
    assert(pthread_join(thread, NULL) == 0 && unlink(fifo) == 0);
}

static void children(void)
{
    int status;
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0)
        _exit(3);
    assert(wait3(&status, 0, NULL) == child && WEXITSTATUS(status) == 3);
    FILE *echo = popen("cat >/dev/null; exit 4", "w");
    assert(echo && fputs("hi\n", echo) >= 0);
    status = pclose(echo);
    assert(WEXITSTATUS(status) == 4);
    char line[8];
    assert((echo = popen("echo hi", "r")) && fgets(line, sizeof line, echo) && strcmp(line, "hi\n") == 0);
    assert(pclose(echo) == 0);
}

int main(void)
{
    int file = mkstemp(name);
    assert(file >= 0 && close(file) == 0);
    messages();
    file_locks();
    fifos();
    children();
    assert(unlink(name) == 0);
    return 0;
}
