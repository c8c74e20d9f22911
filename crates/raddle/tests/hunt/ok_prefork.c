// Nothing is wrong: a server forks its workers before it starts threads. Each worker answers over a
// pair of pipes; one thread per worker sends it requests.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORKERS = 2, REQUESTS = 3 };

struct worker {
    pid_t process;
    int requests, answers;
    pthread_t thread;
    int sum;
};

static struct worker workers[WORKERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int total;

static void answer(int requests, int answers)
{
    int number;

    while (read(requests, &number, sizeof number) == sizeof number) {
        number *= number;
        if (write(answers, &number, sizeof number) != sizeof number)
            _exit(1);
    }
    _exit(0);
}

static void start(struct worker *worker)
{
    int requests[2], answers[2];

    assert(pipe(requests) == 0 && pipe(answers) == 0);
    worker->process = fork();
    assert(worker->process >= 0);
    if (worker->process == 0) {
        for (struct worker *other = workers; other < worker; other++) {
            close(other->requests);
            close(other->answers);
        }
        close(requests[1]);
        close(answers[0]);
        answer(requests[0], answers[1]);
    }
    close(requests[0]);
    close(answers[1]);
    worker->requests = requests[1];
    worker->answers = answers[0];
}

static void *ask(void *argument)
{
    struct worker *worker = argument;

    for (int i = 1; i <= REQUESTS; i++) {
        int number = i;
        assert(write(worker->requests, &number, sizeof number) == sizeof number);
        assert(read(worker->answers, &number, sizeof number) == sizeof number);
        pthread_mutex_lock(&lock);
        total += number;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    for (int i = 0; i < WORKERS; i++)
        start(&workers[i]);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i].thread, NULL, ask, &workers[i]);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < WORKERS; i++) {
        int status;
        close(workers[i].requests);
        close(workers[i].answers);
        assert(waitpid(workers[i].process, &status, 0) == workers[i].process);
        assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert(total == WORKERS * (1 + 4 + 9));
    return EXIT_SUCCESS;
}
