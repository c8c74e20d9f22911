// About: sleeps of different lengths, which end in the order of their deadlines.
// Covers: pthread_mutex_lock, pthread_mutex_unlock, usleep
// Outcome: exit 0 | exit 1
//
// No time passes between the starts of the threads but what they do, so a sorted result is
// what virtual time gives unless sleepers may wake early. Nothing is lost in any case.
#include <assert.h>
#include <pthread.h>
#include <unistd.h>

enum { THREADS = 6 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int numbers[THREADS] = { 4, 1, 6, 3, 5, 2 };
static int sorted[THREADS], n_sorted;

static void *append(void *argument)
{
    int number = *(int *)argument;
    usleep(number * 100000);
    pthread_mutex_lock(&lock);
    sorted[n_sorted++] = number;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, append, &numbers[i]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    int sum = 0, is_sorted = 1;
    for (int i = 0; i < THREADS; i++) {
        sum += sorted[i];
        is_sorted &= sorted[i] == i + 1;
    }
    assert(n_sorted == THREADS && sum == 21);
    return !is_sorted;
}
