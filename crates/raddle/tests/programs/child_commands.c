// About: system and popen, for reading and writing, in several threads at a time, beside a thread that counts in
// short sleeps.
// Covers: popen, pclose, system, fgets, usleep
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int is_over;
static int n_lines, n_ticks;

static void *run(void *argument)
{
    assert(WEXITSTATUS(system("i=0; while [ $i -lt 300 ]; do i=$((i + 1)); done; exit 4")) == 4);
    return argument;
}

static void *read_lines(void *argument)
{
    char line[64];
    FILE *lines = popen("for i in 1 2 3 4 5 6; do echo line $i; done; exit 2", "r");
    assert(lines);
    while (fgets(line, sizeof line, lines)) {
        assert(strncmp(line, "line ", 5) == 0);
        pthread_mutex_lock(&lock);
        n_lines++;
        pthread_mutex_unlock(&lock);
    }
    assert(WEXITSTATUS(pclose(lines)) == 2);
    return argument;
}

static void *write_lines(void *argument)
{
    FILE *lines = popen("n=0; while read -r line; do n=$((n + 1)); done; exit $n", "w");
    assert(lines);
    for (int i = 0; i < 9; i++)
        assert(fprintf(lines, "line %d\n", i) > 0);
    assert(WEXITSTATUS(pclose(lines)) == 9);
    return argument;
}

static void *tick(void *argument)
{
    while (!is_over) {
        pthread_mutex_lock(&lock);
        n_ticks++;
        pthread_mutex_unlock(&lock);
        usleep(100);
    }
    return argument;
}

int main(void)
{
    void *(*const starts[])(void *) = { run, read_lines, write_lines };
    pthread_t threads[3], ticker;
    assert(pthread_create(&ticker, NULL, tick, NULL) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, starts[i], NULL) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    is_over = 1;
    assert(pthread_join(ticker, NULL) == 0);
    assert(n_lines == 6);
    return 0;
}
