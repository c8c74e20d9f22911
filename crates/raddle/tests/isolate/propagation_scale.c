// What is wrong: `scale` is read and written without a lock, so that one change of it is lost. What
// follows is correct, but passes the wrong number on: scale, size, area, limit, and at last an
// index in another thread.
// Isolate: rr
// Cause: race, atomicity
// Guilty: 2 lines

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int scale = 1;
static int size, area, limit;
static int **rows;

static void *enlarge(void *argument)
{
    long number = (long)argument;
    usleep(number == 1 ? 0 : 1000);
    int old = scale; /* guilty */
    if (number == 1)
        usleep(2000);
    scale = old * 4; /* guilty */
    return NULL;
}

static void *measure(void *argument)
{
    (void)argument;
    pthread_mutex_lock(&lock);
    size = 3 * scale;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    area = size * size;
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    limit = area / 2;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[2], measurer;
    rows = calloc(4096, sizeof *rows);
    rows[48 * 48 / 2] = calloc(1, sizeof **rows);
    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, enlarge, (void *)(i + 1));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    pthread_create(&measurer, NULL, measure, NULL);
    pthread_join(measurer, NULL);
    return *rows[limit];
}
