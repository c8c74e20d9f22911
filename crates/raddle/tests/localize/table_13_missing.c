// What is wrong: row 13 of Table 1 of the LOCON paper, second case: the reader reads version and
// text under the lock, the writer lets go of the lock between its two writes. The reader notices
// at once and stops the program before the second write, so that one pair of the couple is in no
// run: that the version is read before it is written.
// Localize: II
// Pairs: 1

#include <assert.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int text;
static volatile int version;
static int writer_counts[6];
static int reader_counts[6];

static void work(int *counts)
{
    for (int i = 0; i < 6; i++)
        counts[i]++;
}

static void *write_text(void *argument)
{
    work(writer_counts);
    pthread_mutex_lock(&lock);
    text = 5;
    pthread_mutex_unlock(&lock);
    work(writer_counts);
    pthread_mutex_lock(&lock);
    version = 1; /* tail */
    pthread_mutex_unlock(&lock);
    return argument;
}

static void *read_text(void *argument)
{
    work(reader_counts);
    pthread_mutex_lock(&lock);
    int seen_version = version; /* head */
    int seen_text = text;
    assert(!(seen_version == 0 && seen_text == 5));
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, write_text, NULL);
    pthread_create(&threads[1], NULL, read_text, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
