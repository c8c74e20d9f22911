// Nothing is wrong: two locks are taken in both orders, but only under a third one that lets
// one thread in at a time. Another pair is taken backwards only while there is one thread.
// Hunt: clean

#include <assert.h>
#include <pthread.h>

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t right = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t page = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t line = PTHREAD_MUTEX_INITIALIZER;
static int n_left, n_right, n_lines;

static void both(pthread_mutex_t *first, pthread_mutex_t *second, int *counter)
{
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    ++*counter;
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
}

static void *leftwards(void *argument)
{
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&gate);
        both(&right, &left, &n_left);
        pthread_mutex_unlock(&gate);
    }
    both(&page, &line, &n_lines);
    return argument;
}

static void *rightwards(void *argument)
{
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&gate);
        both(&left, &right, &n_right);
        pthread_mutex_unlock(&gate);
    }
    both(&page, &line, &n_lines);
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    both(&line, &page, &n_lines);
    pthread_create(&threads[0], NULL, leftwards, NULL);
    pthread_create(&threads[1], NULL, rightwards, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    both(&line, &page, &n_lines);
    assert(n_left == 3 && n_right == 3 && n_lines == 4);
    return 0;
}
