// What is wrong: a semaphore of one stands for a lock. A thread that finds the device busy
// gives up by way of the common exit, which posts what this thread has not taken. From then
// on the semaphore lets two in at once.
// Hunt: fails
// Kind: atomicity, race, failure
// Guilty: 4 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>
#include <semaphore.h>

#define N_THREADS 3

static sem_t guard;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int n_log_lines;
static int position;

static void log_line(void)
{
    pthread_mutex_lock(&log_lock);
    n_log_lines++;
    pthread_mutex_unlock(&log_lock);
}

static int write_block(void)
{
    int status = -1;

    if (sem_trywait(&guard) != 0) { /* guilty */
        log_line();
        goto out;
    }
    int at = position; /* guilty */
    log_line();
    position = at + 1; /* guilty */
    status = 0;
out:
    sem_post(&guard); /* guilty */
    return status;
}

static void *user(void *argument)
{
    int *n_blocks = argument;
    for (int i = 0; i < 2; i++)
        if (write_block() == 0)
            ++*n_blocks;
    return NULL;
}

int main(void)
{
    pthread_t threads[N_THREADS];
    int n_blocks[N_THREADS] = {0};
    int sum = 0;

    sem_init(&guard, 0, 1);
    for (int i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, user, &n_blocks[i]);
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += n_blocks[i];
    }
    assert(position == sum);
    sem_destroy(&guard);
    return 0;
}
