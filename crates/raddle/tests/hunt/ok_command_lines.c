// Nothing is wrong: two threads read the output of a command each and count its lines under a lock.
// Hunt: clean
// Runs: 200

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_lines;

static void *count(void *argument)
{
    char line[32];
    FILE *lines = popen("echo one; echo two; echo three", "r");
    assert(lines);
    while (fgets(line, sizeof line, lines)) {
        assert(strchr(line, '\n'));
        pthread_mutex_lock(&lock);
        n_lines++;
        pthread_mutex_unlock(&lock);
    }
    assert(pclose(lines) == 0);
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, count, NULL) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_lines == 6);
    return 0;
}
