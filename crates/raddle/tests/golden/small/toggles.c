// What is wrong: how it ends depends on whether a file is there, which it makes or removes.

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

static void *other(void *p) { return p; }

int main(void)
{
    pthread_t thread;
    int status;

    pthread_create(&thread, 0, other, 0);
    pthread_join(thread, 0);
    status = unlink("toggle");
    if (status)
        close(open("toggle", O_CREAT, 0600));
    _exit(status ? 1 : 0);
}
