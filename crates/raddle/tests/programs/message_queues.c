// About: POSIX message queues: mq_receive waits for mq_send, mq_send for room; both with time limits.
// Covers: mq_receive, mq_send, mq_timedreceive, mq_timedsend
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGES = 6 };
static mqd_t queue;

static struct timespec soon(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec++;
    return time;
}

static void *receive(void *argument)
{
    char text[8];
    unsigned priority;
    for (int i = 0; i < MESSAGES; i++) {
        struct timespec later = soon();
        later.tv_sec += 3600;
        ssize_t n = i % 2 ? mq_receive(queue, text, sizeof text, &priority)
                          : mq_timedreceive(queue, text, sizeof text, &priority, &later);
        assert(n == 1 && text[0] == 'a' + i && priority == 1);
    }
    return argument;
}

int main(void)
{
    char name[64], text[8];
    struct mq_attr attributes = { .mq_maxmsg = 2, .mq_msgsize = sizeof text };
    snprintf(name, sizeof name, "/raddle-%d", getpid());
    queue = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
    if (queue == (mqd_t)-1)
        return errno == ENOSYS || errno == EACCES || errno == EMFILE ? 0 : 1;
    assert(mq_unlink(name) == 0);

    struct timespec time = soon(), wrong = { .tv_nsec = -1 };
    assert(mq_timedreceive(queue, text, sizeof text, NULL, &time) == -1 && errno == ETIMEDOUT);
    assert(mq_timedreceive(queue, text, sizeof text, NULL, &wrong) == -1 && errno == EINVAL);
    pthread_t thread;
    assert(pthread_create(&thread, NULL, receive, NULL) == 0);
    for (int i = 0; i < MESSAGES; i++) {
        char letter = 'a' + i;
        time = soon();
        time.tv_sec += 3600;
        assert((i % 2 ? mq_send(queue, &letter, 1, 1) : mq_timedsend(queue, &letter, 1, 1, &time)) == 0);
    }
    assert(pthread_join(thread, NULL) == 0);
    assert(mq_send(queue, "x", 1, 0) == 0 && mq_send(queue, "y", 1, 0) == 0);
    time = soon();
    assert(mq_timedsend(queue, "z", 1, 0, &time) == -1 && errno == ETIMEDOUT);
    return 0;
}
