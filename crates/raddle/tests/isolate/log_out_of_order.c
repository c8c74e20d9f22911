// What is wrong: as in MySQL, a change of the database and its entry in the log are made in two
// critical sections. Another change comes in between: the log has them the other way round.
// Isolate: rr
// Cause: atomicity
// Executions: 1 1 0 2
// Guilty: 2 lines

#include <assert.h>
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int last_number;
static int value;

static void *change(void *argument)
{
    long mine = (long)argument;
    usleep(mine == 1 ? 0 : 1000);
    pthread_mutex_lock(&lock);
    int number = last_number; /* guilty */
    value = mine;
    pthread_mutex_unlock(&lock);
    if (mine == 1)
        usleep(2000);
    pthread_mutex_lock(&lock);
    last_number = number + 1; /* guilty */
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, change, (void *)(i + 1));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(last_number == 2);
    return 0;
}
