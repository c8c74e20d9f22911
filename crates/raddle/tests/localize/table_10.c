// What is wrong: row 10 of Table 1 of the LOCON paper, two variables: a thread writes a text's
// length and its checksum, another one reads both. Inconsistent values are read where it does
// so between the two writes. (The other illegal order, the old length and the new checksum, is
// harmless here.)
// Localize: III pc
// Pairs: 2

#include <assert.h>
#include <pthread.h>

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
    length = 5; /* head 1 */
    work(writer_counts);
    work(writer_counts);
    checksum = 77; /* tail 2 */
    return argument;
}

static void *read_both(void *argument)
{
    (void)argument;
    int seen_length = length; /* tail 1 */
    work(reader_counts);
    work(reader_counts);
    int seen_checksum = checksum; /* head 2 */
    return (void *)(long)(seen_length == 5 && seen_checksum == 0);
}

int main(void)
{
    pthread_t threads[2];
    void *wrong;

    pthread_create(&threads[0], NULL, write_both, NULL);
    pthread_create(&threads[1], NULL, read_both, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], &wrong);
    assert(!wrong);
    return 0;
}
