// What is wrong: main learns by an atomic count that all measurements have been *taken*, and
// reports their sum. A worker counts a measurement before it adds it: the report may come
// before the last of them.
// Hunt: fails
// Kind: order, atomicity, multi-variable
// Guilty: 4 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define N_SENSORS 3

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sum;
static _Atomic int n_taken;
static int log_lines;

static int measure(int sensor)
{
    return 10 * (sensor + 1);
}

static void *sense(void *argument)
{
    int sensor = *(const int *)argument;
    int value = measure(sensor);

    atomic_fetch_add(&n_taken, 1); /* guilty */

    pthread_mutex_lock(&lock);
    sum += value; /* guilty */
    log_lines++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *report(void *argument)
{
    int *reported = argument;

    /* Too early is fine: then the caller asks again later. */
    if (atomic_load(&n_taken) < N_SENSORS) /* guilty */
        return NULL;
    pthread_mutex_lock(&lock);
    *reported = sum; /* guilty */
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    static const int numbers[N_SENSORS] = {0, 1, 2};
    pthread_t sensors[N_SENSORS], reporter;
    int reported = -1;

    for (int i = 0; i < N_SENSORS; i++)
        pthread_create(&sensors[i], NULL, sense, (void *)&numbers[i]);
    pthread_create(&reporter, NULL, report, &reported);
    pthread_join(reporter, NULL);
    for (int i = 0; i < N_SENSORS; i++)
        pthread_join(sensors[i], NULL);

    if (reported == -1)
        report(&reported);
    printf("%d\n", reported);
    assert(reported == 60);
    return 0;
}
