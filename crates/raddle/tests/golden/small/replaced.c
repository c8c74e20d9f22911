// What is wrong: it becomes another program, which fails in the way that the argument says.

#include <pthread.h>
#include <unistd.h>

static void *other(void *p) { return p; }

int main(int argc, char **argv)
{
    pthread_t thread;

    (void)argc;
    pthread_create(&thread, 0, other, 0);
    pthread_join(thread, 0);
    execl("/bin/sh", "sh", "-c", argv[1], (char *)0);
    return 1;
}
