// About: exec in place of the program, while other threads run; it never returns.
// Covers: usleep
// Outcome: exit 8
#include <pthread.h>
#include <unistd.h>

static volatile unsigned long work_done;

static void *work(void *argument)
{
    for (;;) {
        work_done++;
        usleep(1000);
    }
    return argument;
}

static void *replace(void *argument)
{
    execl("/bin/sh", "sh", "-c", "exit 8", (char *)NULL);
    return argument;
}

int main(void)
{
    pthread_t worker, replacer;
    pthread_create(&worker, NULL, work, NULL);
    pthread_create(&replacer, NULL, replace, NULL);
    pthread_join(replacer, NULL);
    return 1;
}
