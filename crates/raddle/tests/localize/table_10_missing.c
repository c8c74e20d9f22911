// What is wrong: row 10 of Table 1 of the LOCON paper, third case: the reader reads length and
// checksum under the lock, the writer lets go of the lock between its two writes. The reader
// notices at once and stops the program before the second write, so that one pair of the couple
// is in no run: that the checksum is read before it is written.
// Localize: II
// Pairs: 1

#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int length;
static int checksum;
static int writer_counts[6];
static int reader_counts[6];

static void work(int *counts)
{
    for (int i = 0; i < 6; i++)
        counts[i]++;
}

static void *write_both(void *argument)
{
    work(writer_counts);
    pthread_mutex_lock(&lock);
    length = 5;
    pthread_mutex_unlock(&lock);
    work(writer_counts);
    pthread_mutex_lock(&lock);
    checksum = 77; /* tail */
    pthread_mutex_unlock(&lock);
    return argument;
}

static void *read_both(void *argument)
{
    work(reader_counts);
    pthread_mutex_lock(&lock);
    int seen_length = length;
    int seen_checksum = checksum; /* head */
    assert(!(seen_length == 5 && seen_checksum == 0));
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, write_both, NULL);
    pthread_create(&threads[1], NULL, read_both, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
