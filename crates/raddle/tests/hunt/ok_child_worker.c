// Nothing is wrong: two threads hand out work to a child process, by one pipe each way and one at a time, and add up
// what it answers under a lock.
// Hunt: clean
// Runs: 400

#include <assert.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static int to_child[2], from_child[2];
static pthread_mutex_t pipe_lock = PTHREAD_MUTEX_INITIALIZER, sum_lock = PTHREAD_MUTEX_INITIALIZER;
static int sum;

static void square_all(void)
{
    int n;
    close(to_child[1]);
    while (read(to_child[0], &n, sizeof n) == sizeof n) {
        n *= n;
        assert(write(from_child[1], &n, sizeof n) == sizeof n);
    }
    _exit(0);
}

static int square(int n)
{
    pthread_mutex_lock(&pipe_lock);
    assert(write(to_child[1], &n, sizeof n) == sizeof n);
    assert(read(from_child[0], &n, sizeof n) == sizeof n);
    pthread_mutex_unlock(&pipe_lock);
    return n;
}

static void *add(void *argument)
{
    for (int n = 1; n <= 3; n++) {
        int squared = square(n);
        pthread_mutex_lock(&sum_lock);
        sum += squared;
        pthread_mutex_unlock(&sum_lock);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    int status;
    assert(pipe(to_child) == 0 && pipe(from_child) == 0);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0)
        square_all();
    assert(close(to_child[0]) == 0 && close(from_child[1]) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, add, NULL) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(close(to_child[1]) == 0);
    assert(waitpid(child, &status, 0) == child && status == 0);
    assert(sum == 28);
    return 0;
}
