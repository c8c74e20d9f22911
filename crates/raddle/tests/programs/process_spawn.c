// About: vfork and exec, posix_spawn, system, popen, while another thread works.
// Covers: popen, posix_spawn, posix_spawnp, system, vfork
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static atomic_int stop;
static volatile unsigned long work_done;

static void *work(void *argument)
{
    while (!stop) {
        work_done++;
        usleep(100);
    }
    return argument;
}

int main(void)
{
    pthread_t thread;
    int status;
    assert(pthread_create(&thread, NULL, work, NULL) == 0);

    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(127);
    }
    assert(child > 0 && waitpid(child, &status, 0) == child && status == 0);

    char *arguments[] = { "sh", "-c", "exit 3", NULL };
    assert(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ) == 0);
    assert(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
    assert(posix_spawnp(&child, "true", NULL, NULL, (char *[]){ "true", NULL }, environ) == 0);
    assert(waitpid(child, &status, 0) == child && status == 0);

    assert(WEXITSTATUS(system("exit 4")) == 4);

    char line[16];
    FILE *output = popen("echo from a child", "r");
    assert(output && fgets(line, sizeof line, output) && strncmp(line, "from a child", 12) == 0);
    assert(pclose(output) == 0);

    stop = 1;
    assert(pthread_join(thread, NULL) == 0);
    return 0;
}
