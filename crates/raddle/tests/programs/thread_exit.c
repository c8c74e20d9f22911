// About: pthread_exit from nested calls, its value, cleanup handlers in reverse order.
// Covers: pthread_mutex_lock, pthread_mutex_unlock, End, Join
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <stdint.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int order[3], n_ran;

static void note(void *argument)
{
    order[n_ran++] = (int)(intptr_t)argument;
}

static void unlock(void *argument)
{
    note((void *)3);
    pthread_mutex_unlock(argument);
}

static int descend(int depth, int bottom)
{
    if (depth == bottom)
        pthread_exit((void *)(intptr_t)1234);
    return depth > 1000 ? 0 : descend(depth + 1, bottom) + 1;
}

static void *work(void *argument)
{
    pthread_cleanup_push(note, (void *)1);
    pthread_cleanup_push(note, (void *)2);
    pthread_cleanup_pop(1); // Ran at once.
    pthread_mutex_lock(&lock);
    pthread_cleanup_push(unlock, &lock);
    descend(0, 20);
    pthread_cleanup_pop(0);
    pthread_cleanup_pop(0);
    return argument;
}

static void *returns(void *argument)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return (char *)argument + 1;
}

int main(void)
{
    pthread_t threads[2];
    void *result;
    assert(pthread_create(&threads[0], NULL, work, NULL) == 0);
    assert(pthread_create(&threads[1], NULL, returns, &order) == 0);
    assert(pthread_join(threads[0], &result) == 0 && (intptr_t)result == 1234);
    assert(pthread_join(threads[1], &result) == 0 && result == (char *)&order + 1);
    assert(n_ran == 3 && order[0] == 2 && order[1] == 3 && order[2] == 1);
    return 0;
}
