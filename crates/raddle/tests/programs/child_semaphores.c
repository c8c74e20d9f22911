// About: threads and two forked children that hand a token around by semaphores in shared memory.
// Covers: fork, sem_wait, sem_post, sem_trywait, waitpid
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct shared {
    sem_t request[2], answer[2];
};

static struct shared *shared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_answers, n_tries, n_work;

static void child(int number)
{
    for (int i = 0; i < 5; i++) {
        sem_wait(&shared->request[number]);
        sem_post(&shared->answer[number]);
    }
    _exit(number);
}

static void *talk(void *argument)
{
    int number = *(int *)argument;
    for (int i = 0; i < 5; i++) {
        assert(sem_post(&shared->request[number]) == 0);
        if (i % 2 == 0 || sem_trywait(&shared->answer[number]) != 0) {
            assert(sem_wait(&shared->answer[number]) == 0);
            pthread_mutex_lock(&lock);
            n_tries++;
            pthread_mutex_unlock(&lock);
        }
        pthread_mutex_lock(&lock);
        n_answers++;
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

static void *work(void *argument)
{
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&lock);
        n_work++;
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[2], worker;
    pid_t children[2];
    int numbers[] = { 0, 1 }, status;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert(shared != MAP_FAILED);
    for (int i = 0; i < 2; i++)
        assert(sem_init(&shared->request[i], 1, 0) == 0 && sem_init(&shared->answer[i], 1, 0) == 0);
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        assert(children[i] >= 0);
        if (children[i] == 0)
            child(i);
    }
    assert(pthread_create(&worker, NULL, work, NULL) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, talk, &numbers[i]) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(pthread_join(worker, NULL) == 0);
    assert(n_answers == 10);
    for (int i = 0; i < 2; i++)
        assert(waitpid(children[i], &status, 0) == children[i] && WEXITSTATUS(status) == i);
    return 0;
}
